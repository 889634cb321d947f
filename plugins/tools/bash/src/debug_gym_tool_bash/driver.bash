# What a new shell reads first: the reports that it makes to the host after each command.
#
# $1 is the descriptor of run.bash, $2 that of the channel to the host, $3 that of what is to be restored. The shell's
# own standard streams are the pipe that the host types into, and nowhere: prompts, traces and notices of jobs are for
# nobody. Commands have the PTY (see run.bash).
#
# Commands may define functions with the names of builtins, so that all are called by `\builtin`; the functions
# `builtin` and `exec` themselves do not last longer than a command.
exec 20<&"$1" 21>&1 22>&"$2" 23<&"$3" 1>/dev/null 2>&1
for __debug_gym_descriptor in "$1" "$2" "$3"; do
  exec {__debug_gym_descriptor}>&-
done
unset -v __debug_gym_descriptor
set --
set +m +o history +H
shopt -s execfail

# Tell the host which command has ended, its exit status, the directory, the flags; then what a new shell must be told.
__debug_gym_report() {
  __debug_gym_quiet 0
  \builtin local "__debug_gym_which=$1" "__debug_gym_status=$2" "__debug_gym_flags=$-" __debug_gym_state
  \builtin shift 2
  \builtin unset -v __debug_gym_command __debug_gym_last
  __debug_gym_send "$__debug_gym_which" "$__debug_gym_status" "${PWD-}" "$__debug_gym_flags"
  __debug_gym_state=$(__debug_gym_state "$@") || [[ . ]]
  __debug_gym_send state "$__debug_gym_which" "$__debug_gym_state" ''
}

# Have the channel where it is reported to. A function that calls `exit` runs EXIT traps while the redirections of run.bash
# still hold: bash keeps the channel elsewhere then, closed for programs, as no socket of a command's own is.
__debug_gym_reach() {
  \builtin local $'IFS= \t' __debug_gym_key __debug_gym_value __debug_gym_number
  if [[ -S /proc/self/fd/22 ]]; then \builtin return 0; fi # without the number, a trap returns the status of before it
  for ((__debug_gym_number = 10; __debug_gym_number < 100; __debug_gym_number++)); do
    if [[ ! -S /proc/self/fd/$__debug_gym_number ]]; then \builtin continue; fi
    while \builtin read -r __debug_gym_key __debug_gym_value; do
      if [[ $__debug_gym_key = flags: ]] && ((8#$__debug_gym_value & 8#2000000)); then
        exec 22>&"$__debug_gym_number"
        \builtin return 0
      fi
    done </proc/self/fdinfo/"$__debug_gym_number"
  done
}

# Show no more of what is printed; the exit status is the one that is given.
__debug_gym_quiet() {
  __debug_gym_repair
  \builtin unset -f exec # which `builtin` cannot call: its redirections would not last
  exec 1>/dev/null 2>&1
  __debug_gym_reach
  \builtin return "$1"
}

# What `$?` is when a command begins: the exit status of the one before. Behind `&&` no ERR trap and no `set -e` takes it
# for a failure; what is behind that is not run then, so that it is done here, where a DEBUG trap does not see it.
__debug_gym_show() {
  if [[ $1 != 0 ]]; then exec 1>&21; fi
  \builtin return "$1"
}

# Make sure that our builtins can be called: a function may be in the way of `builtin`, or they may be disabled.
__debug_gym_repair() {
  __debug_gym_enable
  __debug_gym_probe=
  \builtin eval '__debug_gym_probe=1' || [[ . ]]
  if [[ -z $__debug_gym_probe ]]; then
    POSIXLY_CORRECT=1 # POSIX mode, in which `unset` is found before a function of that name
    \unset -f builtin
    \unset -v POSIXLY_CORRECT
    __debug_gym_enable
  fi
  \builtin unset -v __debug_gym_probe
}

__debug_gym_enable() {
  \builtin enable . alias cd compgen continue declare eval exec export local printf read return set shift shopt test trap umask \
    unset || [[ . ]]
}

# Text that makes another shell like this one. What changes how all else is read comes last: options, aliases, and
# functions that have the names of builtins which the text uses.
__debug_gym_state() {
  \builtin local "__debug_gym_options=$(\builtin set +o)" __debug_gym_name
  \builtin set +eux
  \builtin shopt -p
  \builtin printf 'shopt -u expand_aliases\n'
  \builtin umask -p
  \builtin printf 'set --'
  if (($# > 0)); then \builtin printf ' %q' "$@"; fi
  \builtin printf '\n'
  \builtin compgen -A function | while IFS= \builtin read -r __debug_gym_name; do
    case $__debug_gym_name in
      __debug_gym_* | alias | builtin | declare | set | shopt | trap | umask) ;;
      *) \builtin declare -f -- "$__debug_gym_name" ;;
    esac
  done
  \builtin declare -Fx
  \builtin compgen -v | __debug_gym_variables
  \builtin alias -p
  \builtin trap -p DEBUG RETURN ERR HUP INT QUIT USR1 USR2 PIPE ALRM TERM CHLD CONT TSTP TTIN TTOU WINCH
  \builtin printf '%s\n' "${__debug_gym_options/set -o onecmd/set +o onecmd}" # with it, a shell ends after one command
  if [[ $__debug_gym_flags = *e* ]]; then # which a substitution does not inherit
    \builtin printf 'set -o errexit\n'
  fi
  for __debug_gym_name in alias declare set shopt trap umask; do
    \builtin declare -f -- "$__debug_gym_name"
  done
  if \builtin shopt -q expand_aliases; then
    \builtin printf '\\builtin shopt -s expand_aliases\n'
  fi
}

# The variables that standard input names, as commands; the host is told which are too large to be kept.
__debug_gym_variables() {
  \builtin local __debug_gym_name __debug_gym_size "__debug_gym_left=1000000"
  while IFS= \builtin read -r __debug_gym_name; do
    if __debug_gym_is_own "$__debug_gym_name"; then continue; fi
    __debug_gym_measure "$__debug_gym_name"
    if ((__debug_gym_size > __debug_gym_left)); then
      __debug_gym_send large "$__debug_gym_which" "$__debug_gym_name" ''
    else
      ((__debug_gym_left -= __debug_gym_size))
      \builtin declare -p -- "$__debug_gym_name"
    fi
  done
}

# About how many bytes a variable has, its keys too; a long text is not copied for that, nor are a million elements.
__debug_gym_measure() {
  \builtin local "LC_ALL=C" "IFS= " __debug_gym_text
  __debug_gym_size=0
  if \builtin test -R "$1"; then \builtin return; fi
  \builtin eval "__debug_gym_size=\${#$1}" # of an array, that of its first element
  if ((__debug_gym_size > 100000)); then \builtin return; fi
  \builtin eval "__debug_gym_size=\$((\${#$1[@]} * 10))"
  if ((__debug_gym_size > 1000000)); then \builtin return; fi
  \builtin eval "__debug_gym_text=\"\${!$1[*]} \${$1[*]}\""
  ((__debug_gym_size += ${#__debug_gym_text}))
}

# Whether a variable is one that each shell has of its own.
__debug_gym_is_own() {
  case $1 in
    BASH_ENV) \builtin return 1 ;;
    __debug_gym_* | BASH* | COMP_* | DIRSTACK | EPOCH* | EUID | FUNCNAME | GROUPS | HIST* | HOSTTYPE | LINENO) ;;
    MACHTYPE | OSTYPE | PIPESTATUS | PPID | PWD | RANDOM | SECONDS | SHELLOPTS | SHLVL | SRANDOM | UID | _) ;;
    *) \builtin return 1 ;;
  esac
}

# A message: its length in four bytes, then four fields with NULs between them.
__debug_gym_send() {
  \builtin local "LC_ALL=C" __debug_gym_size __debug_gym_head # in quotes: `set -k` takes the words behind for others
  __debug_gym_size=$((${#1} + ${#2} + ${#3} + ${#4} + 3))
  \builtin printf -v __debug_gym_head '\\x%02x' "$((__debug_gym_size >> 24 & 255))" \
    "$((__debug_gym_size >> 16 & 255))" "$((__debug_gym_size >> 8 & 255))" "$((__debug_gym_size & 255))"
  \builtin printf "$__debug_gym_head"'%s\0%s\0%s\0%s' "$1" "$2" "$3" "$4" >&22
}

# Forget the variables that came with the environment, before those of another shell are set.
__debug_gym_clear() {
  \builtin local __debug_gym_name
  while IFS= \builtin read -r __debug_gym_name; do
    __debug_gym_is_own "$__debug_gym_name" || \builtin unset -v "$__debug_gym_name"
  done < <(\builtin compgen -e)
}

readonly -f __debug_gym_report __debug_gym_reach __debug_gym_quiet __debug_gym_show __debug_gym_repair __debug_gym_enable \
  __debug_gym_state __debug_gym_variables __debug_gym_measure __debug_gym_is_own __debug_gym_send __debug_gym_clear
trap '__debug_gym_report exit "$?" "$@"' EXIT
__debug_gym_report start 0
