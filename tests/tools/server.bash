# shellcheck shell=bash
# What the scripts of servers share: a process known by more than its number, free ports, an end for certain.
# A script that sources this sets $tool (its name), $dir (a folder of this server's own) and $stop_limit_s.

: "${tool:?}" "${dir:?}" "${stop_limit_s:?}"

fail() {
  echo "$tool: $*" >&2
  exit 1
}

# --- the process: its id and the moment it began, so that a number used again is never taken for it ---

began() { LC_ALL=C ps -o lstart= -p "$1" 2>/dev/null; }

remember() { printf '%s\n%s\n' "$1" "$(began "$1")" >"$dir/pid"; }

# Prints the process id when it is still that process and no zombie.
alive() {
  [ -e "$dir/pid" ] || return 1
  local pid moment state
  { read -r pid && read -r moment; } <"$dir/pid" || return 1
  [ "$(began "$pid")" = "$moment" ] || return 1
  state=$(LC_ALL=C ps -o state= -p "$pid" 2>/dev/null) || return 1
  case $state in Z*) return 1 ;; esac
  echo "$pid"
}

paused() { case $(LC_ALL=C ps -o state= -p "$1" 2>/dev/null) in T*) true ;; *) false ;; esac; }

wait_gone() {
  local until=$((SECONDS + $1))
  while alive >/dev/null; do
    [ "$SECONDS" -lt "$until" ] || return 1
    sleep 0.1
  done
}

# --- ports ---

taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# A port that nobody listens on, below the range from which the system gives ports to clients.
free_port() {
  local port tries
  for tries in $(seq 200); do
    port=$((12000 + (RANDOM * 32768 + RANDOM + tries) % 18000))
    taken "$port" || { echo "$port"; return; }
  done
  fail "found no free port between 12000 and 30000"
}

# --- its life ---

# Ends the server, over restarts too, when process $1, begun at $2, has ended. Waits as long as $dir/owner is there.
watch() {
  trap '' INT HUP
  while [ -e "$dir/owner" ] && [ "$(began "$1")" = "$2" ]; do sleep 1; done
  [ ! -e "$dir/owner" ] || signal KILL
}

watch_aside() {
  echo "$1" >"$dir/owner"
  setsid "$0" -C "$dir" watch "$1" "$(began "$1")" </dev/null >/dev/null 2>&1 &
}

signal() {
  local pid
  pid=$(alive) || return 1
  kill "-$1" "$pid"
}

stop() {
  signal CONT || return 0
  signal TERM || return 0
  wait_gone "$stop_limit_s" && return
  echo "$tool: it did not end within $stop_limit_s s of SIGTERM; killing it" >&2
  crash
}

crash() {
  signal KILL || return 0
  wait_gone 10 || fail "it did not end within 10 s of SIGKILL"
}

status() {
  local pid
  if ! pid=$(alive); then
    echo stopped
    return 1
  elif paused "$pid"; then
    echo paused
    return 1
  fi
  echo running
}

pause() { signal STOP || fail "nothing runs in $dir"; }

resume() { signal CONT || fail "nothing runs in $dir"; }
