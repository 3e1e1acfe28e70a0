# Puts the files that were sent in their places, those whose content is right.
# Lines of $manifest: sha256 mode-in-octal temporary-name path.
# Answers: "done N" and "bad N SHA256-OF-WHAT-CAME".
set -eu
root=${PAICTL_ROOT:-}
cache=$root/var/lib/paictl/sums
nl='
'
set --
while read -r sum octal temp path; do
  file=$root$path
  set -- "$@" "${file%/*}/$temp"
done <<EOT
$manifest
EOT
sums=$(sums "$@")

set --
moved=
n=0
while read -r got temporary <&3 && read -r sum octal temp path <&4; do
  temporary=${temporary#\*}
  file=$root$path
  if [ "$got" = "$sum" ]; then
    chmod "$octal" "$temporary"
    mv -f "$temporary" "$file"
    echo "done $n"
    set -- "$@" "$file"
    moved="$moved$sum$nl"
  else
    rm -f "$temporary"
    echo "bad $n $got"
  fi
  n=$((n + 1))
done 3<<EOT 4<<EOP
$sums
EOT
$manifest
EOP

if [ $# -gt 0 ]; then
  mkdir -p "${cache%/*}"
  umask 077
  stats=$(stat -L -c '%i %s %y %z %n' -- "$@")
  while read -r key <&3 && read -r sum <&4; do
    echo "$key $sum"
  done 3<<EOT 4<<EOP >>"$cache"
$stats
EOT
$moved
EOP
fi
