# Reports which files of $manifest differ from the files on this host, and makes an empty
# file beside each that does, readable by root only.
# Lines of $manifest: sha256 size mode-in-hex mode-in-octal temporary-name path.
# Answers: "root PREFIX", "mode N", "directory N", "send N BYTES-ALREADY-THERE".
# $cache holds sums of files seen before, with inode, size and times, so that large files
# are read once; a file that was touched since then does not match its line.
set -eu
set -C
root=${PAICTL_ROOT:-}
cache=$root/var/lib/paictl/sums
nl='
'
set --
sizes=$nl
while read -r sum size hex octal temp path; do
  set -- "$@" "$root$path"
  sizes="$sizes$size $root$path$nl"
done <<EOT
$manifest
EOT
stats=$(stat -L -c '%f %i %s %y %z %n' -- "$@" 2>/dev/null || :)
cached=$nl
if [ -r "$cache" ]; then cached="$nl$(cat "$cache")$nl"; fi

have=$nl
directories=$nl
pending=
set --
while read -r hex i s a b c d e f path; do
  case $hex in
  4*) directories="$directories$path$nl"; continue ;;
  8*) ;;
  *) continue ;;
  esac
  case $sizes in *"$nl$s $path$nl"*) ;; *) continue ;; esac
  key="$i $s $a $b $c $d $e $f $path"
  case $cached in
  *"$nl$key "*)
    sum=${cached#*"$nl$key "}
    have="$have${sum%%"$nl"*} $hex $path$nl" ;;
  *)
    set -- "$@" "$path"
    pending="$pending$hex $key$nl" ;;
  esac
done <<EOT
$stats
EOT

if [ $# -gt 0 ]; then
  sums=$(sums "$@")
  seen=
  while read -r sum path <&3 && read -r hex key <&4; do
    path=${path#\*}
    have="$have$sum $hex $path$nl"
    seen="$seen$key $sum$nl"
  done 3<<EOT 4<<EOP
$sums
EOT
$pending
EOP
  mkdir -p "${cache%/*}"
  umask 077
  if [ ${#cached} -gt 200000 ]; then : >|"$cache"; fi
  printf %s "$seen" >>"$cache"
  umask 022
fi

echo "root $root"
n=0
while read -r sum size hex octal temp path; do
  file=$root$path
  case $have in
  *"$nl$sum $hex $file$nl"*) ;;
  *"$nl$sum "????" $file$nl"*)
    chmod "$octal" "$file"
    echo "mode $n" ;;
  *)
    case $directories in
    *"$nl$file$nl"*) echo "directory $n" ;;
    *)
      dir=${file%/*}
      if [ ! -d "$dir/" ]; then umask 022; mkdir -p "$dir/"; fi
      part=0
      if [ -f "$dir/$temp" ] && [ ! -L "$dir/$temp" ]; then
        part=$(stat -c %s "$dir/$temp")
      else
        rm -f "$dir/$temp"
        umask 077
        : >"$dir/$temp"
      fi
      echo "send $n $part" ;;
    esac ;;
  esac
  n=$((n + 1))
done <<EOT
$manifest
EOT
