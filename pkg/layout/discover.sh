# Prints facts about a machine, one per line: key, tab, value. It changes nothing, doesn't
# need root (as root it also reads the product UUID), and continues if something is missing.
# PAICTL_ROOT is a folder that stands for / in tests.
set -eu
LC_ALL=C
export LC_ALL
ROOT=${PAICTL_ROOT:-}
PATH=$PATH:/usr/sbin:/sbin:/usr/local/sbin

say() { printf '%s\t%s\n' "$1" "$2"; }

# The first line of a file, without starting a program.
first_line() {
  line=
  [ -r "$1" ] || return 0
  read -r line 2>/dev/null <"$1" || :
}

say_file() {
  first_line "$2"
  [ -z "$line" ] || say "$1" "$line"
}

have() { command -v "$1" >/dev/null 2>&1; }

# A program that may hang (a broken driver) gets 20 seconds.
limited() {
  if have timeout; then timeout -k 5 20 "$@"; else "$@"; fi
}

facts_time() {
  now=$(date +%s%3N 2>/dev/null) || now=
  case $now in
    '' | *[!0-9]*) now=$(date +%s)000 ;;
  esac
  say time "$now"
  if [ -e "$ROOT/run/systemd/timesync/synchronized" ]; then
    say time-source systemd-timesyncd
    say time-synced yes
  elif [ -e "$ROOT/run/chrony/chronyd.pid" ] || [ -e "$ROOT/run/chronyd.pid" ]; then
    say time-source chrony
    if have chronyc; then
      limited chronyc -n tracking 2>/dev/null | while read -r line; do
        case $line in
          Leap*Normal*) say time-synced yes ;;
          Leap*) say time-synced no ;;
        esac
      done
    fi
  elif [ -e "$ROOT/run/ntpd.pid" ]; then
    say time-source ntpd
  elif [ -d "$ROOT/run/systemd/system" ] && have timedatectl; then
    if limited timedatectl show -p NTPSynchronized 2>/dev/null | grep -q '=yes'; then
      say time-synced yes
    else
      say time-synced no
    fi
  fi
}

facts_system() {
  say_file hostname "$ROOT/proc/sys/kernel/hostname"
  say_file kernel "$ROOT/proc/sys/kernel/osrelease"
  say_file arch "$ROOT/proc/sys/kernel/arch" # since Linux 6.1, without a program
  [ -n "$line" ] || say arch "$(uname -m)"
  for f in "$ROOT/etc/os-release" "$ROOT/usr/lib/os-release"; do
    [ -r "$f" ] || continue
    while read -r line || [ -n "$line" ]; do
      case $line in
        ID=* | VERSION_ID=* | PRETTY_NAME=*) say os-release "$line" ;;
      esac
    done <"$f"
    break
  done
  say_file machine-id "$ROOT/etc/machine-id"
  say_file product-uuid "$ROOT/sys/class/dmi/id/product_uuid"
  say_file product "$ROOT/sys/class/dmi/id/product_name"
  say_file vendor "$ROOT/sys/class/dmi/id/sys_vendor"
  # Whether the kernel and the clock belong to another machine. systemd-detect-virt would
  # cost a third of the whole script's time.
  if [ -r "$ROOT/run/systemd/container" ]; then
    say_file container "$ROOT/run/systemd/container"
  elif [ -e "$ROOT/.dockerenv" ]; then
    say container docker
  elif [ -e "$ROOT/run/.containerenv" ]; then
    say container podman
  fi
}

facts_cpu() {
  say_file cpus "$ROOT/sys/devices/system/cpu/online"
  if [ -z "$line" ] && [ -r "$ROOT/proc/cpuinfo" ]; then
    say cpu-count "$(grep -c '^processor' "$ROOT/proc/cpuinfo" || :)"
  fi
  found=
  if [ -r "$ROOT/proc/cpuinfo" ]; then
    while read -r line; do
      case $line in
        'model name'*)
          say cpu-model "${line#*: }"
          found=yes
          break
          ;;
        '') break ;;
      esac
    done <"$ROOT/proc/cpuinfo"
  fi
  if [ -z "$found" ] && have lscpu; then
    lscpu 2>/dev/null | while read -r line; do
      case $line in
        'Model name:'*) say cpu-model "${line#*:}" ;;
      esac
    done
  fi
}

facts_memory() {
  [ -r "$ROOT/proc/meminfo" ] || return 0
  while read -r key value _; do
    case $key in
      MemTotal:) say memory-kib "$value" ;;
      SwapTotal:)
        say swap-kib "$value"
        break
        ;;
    esac
  done <"$ROOT/proc/meminfo"
}

facts_disks() {
  for d in "$ROOT"/sys/block/*; do
    name=${d##*/}
    case $name in
      '*' | loop* | ram* | zram* | dm-* | md* | sr* | fd* | nbd* | rbd* | drbd*) continue ;;
    esac
    first_line "$d/removable"
    [ "$line" != 1 ] || continue
    first_line "$d/size"
    sectors=${line:-0}
    first_line "$d/queue/rotational"
    say disk "$name $sectors ${line:-0}"
  done
  # -P keeps one line per file system; the last column may hold spaces.
  path=/
  set -- "$ROOT/"
  [ ! -d "$ROOT/var/lib" ] || set -- "$ROOT/" "$ROOT/var/lib"
  while read -r fs total _ free _; do
    case $total in
      *[!0-9]* | '') continue ;;
    esac
    say filesystem "$path $total $free $fs"
    path=/var/lib
  done <<EOF
$(df -Pk "$@" 2>/dev/null || :)
EOF
}

facts_network() {
  if have ip; then
    while read -r _ iface family address _; do
      case $family in
        inet | inet6) say address "$iface $address" ;;
      esac
    done <<EOF
$(ip -o addr show scope global 2>/dev/null || :)
EOF
  elif have hostname; then
    for a in $(hostname -I 2>/dev/null || :); do say address "- $a"; done
  fi
  if [ -r "$ROOT/proc/net/route" ]; then
    while read -r iface destination _; do
      if [ "$destination" = 00000000 ]; then
        say default-interface "$iface"
        break
      fi
    done <"$ROOT/proc/net/route"
  fi
}

# The local stub 127.0.0.53 means nothing to a pod: the servers behind it are asked for.
facts_dns() {
  servers=
  for f in "$ROOT/run/systemd/resolve/resolv.conf" "$ROOT/etc/resolv.conf"; do
    [ -r "$f" ] || continue
    while read -r key value _ || [ -n "$key" ]; do
      case $key:$value in
        nameserver:127.* | nameserver:::1) ;;
        nameserver:?*)
          say dns "$value"
          servers=yes
          ;;
      esac
      key=
    done <"$f"
    [ -z "$servers" ] || return 0
  done
  if have resolvectl; then
    limited resolvectl dns 2>/dev/null | while read -r line; do
      for w in ${line#*:}; do say dns "$w"; done
    done
  fi
}

facts_cgroup() {
  if [ -e "$ROOT/sys/fs/cgroup/cgroup.controllers" ]; then
    say cgroup v2
  elif [ -d "$ROOT/sys/fs/cgroup/unified" ]; then
    say cgroup hybrid
  elif [ -d "$ROOT/sys/fs/cgroup/memory" ]; then
    say cgroup v1
  fi
}

runtime() {
  if [ -S "$ROOT$3" ] || [ -e "$ROOT$3" ]; then
    say runtime "$1 running"
  elif have "$2"; then
    say runtime "$1 installed"
  fi
}

facts_runtimes() {
  runtime containerd containerd /run/containerd/containerd.sock
  runtime docker dockerd /run/docker.sock
  runtime cri-o crio /run/crio/crio.sock
  runtime podman podman /run/podman/podman.sock
  runtime kubelet kubelet /var/lib/kubelet/config.yaml
}

facts_gpus() {
  nvidia=
  for d in "$ROOT"/sys/bus/pci/devices/*; do
    first_line "$d/class"
    case $line in
      0x03* | 0x12* | 0x0680*) ;; # NVSwitches are bridges
      *) continue ;;
    esac
    class=$line
    first_line "$d/vendor"
    vendor=$line
    first_line "$d/device"
    case $class:$vendor in
      0x0680*:0x10de) say nvswitch "${d##*/} $vendor $line" ;;
      0x0680*) ;;
      *)
        [ "$vendor" != 0x10de ] || nvidia=yes
        say pci-gpu "${d##*/} $vendor $line $class"
        ;;
    esac
  done
  if [ -n "$nvidia" ]; then
    facts_nvlink5
    facts_driver
  fi
  if have nvidia-smi; then
    limited nvidia-smi --query-gpu=index,name,memory.total,driver_version,uuid \
      --format=csv,noheader,nounits 2>&1 | while read -r line; do
      say nvidia-smi "$line"
    done || :
  fi
  say_file nvidia-version "$ROOT/proc/driver/nvidia/version"
  for f in "$ROOT"/proc/driver/nvidia/gpus/*/information; do
    [ -r "$f" ] || continue
    while read -r key value; do
      case $key in
        Model:)
          say nvidia-model "$value"
          break
          ;;
      esac
    done <"$f"
  done
}

# fabric_card DEVICE: reports whether a network card manages NVSwitches. Those of NVLink 5 aren't on the PCI bus: the fabric manager reaches
# them through cards of Mellanox, whose vital product data say so. Only root can read these, and a broken card may answer slowly.
fabric_card() {
  first_line "$1/vendor"
  [ "$line" = 0x15b3 ] && [ -r "$1/vpd" ] && limited grep -q SW_MNG "$1/vpd" 2>/dev/null
}

facts_nvlink5() {
  for d in "$ROOT"/sys/bus/pci/devices/*; do
    first_line "$d/class"
    case $line in 0x02*) ;; *) continue ;; esac
    fabric_card "$d" || continue
    first_line "$d/device"
    say nvswitch "${d##*/} 0x15b3 $line"
  done
}

# facts_driver prints the facts that matter to a driver for NVIDIA's GPUs. The installer of a runfile
# leaves a program to remove it, which no package has.
facts_driver() {
  if [ -e "$ROOT/usr/bin/nvidia-uninstall" ]; then
    say nvidia-origin runfile
  else
    for f in "$ROOT"/var/lib/dpkg/info/libnvidia-*ml1*.list "$ROOT"/var/lib/dpkg/info/libnvidia-compute*.list \
      "$ROOT"/var/lib/dpkg/info/*nvidia*dkms*.list "$ROOT"/var/lib/dpkg/info/linux-modules-nvidia-*.list; do
      [ -e "$f" ] || continue
      say nvidia-origin package
      break
    done
  fi
  # Four bytes of attributes, then 1 or 0; the shell leaves zeros out.
  first_line "$ROOT/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
  case $line in
    '') ;;
    *"$(printf '\001')") say secure-boot on ;;
    *) say secure-boot off ;;
  esac
  [ ! -d "$ROOT/sys/module/nouveau" ] || say nouveau loaded
  first_line "$ROOT/proc/sys/kernel/osrelease"
  [ ! -e "$ROOT/lib/modules/$line/build" ] || say kernel-headers "$line"
}

facts_infiniband() {
  for d in "$ROOT"/sys/class/infiniband/*; do
    [ -d "$d" ] || continue
    if fabric_card "$d/device"; then continue; fi
    first_line "$d/ports/1/link_layer"
    layer=$line
    first_line "$d/ports/1/rate"
    rate=$line
    first_line "$d/ports/1/state"
    say infiniband "${d##*/}|$layer|$rate|$line"
  done
}

facts_sudo() {
  uid=$(id -u)
  say uid "$uid"
  if [ "$uid" = 0 ]; then
    say sudo root
  elif ! have sudo; then
    say sudo missing
  elif answer=$(sudo -n true 2>&1 </dev/null); then
    say sudo free
  else
    case $answer in
      *password* | *authentication*) say sudo password ;;
      *) say sudo refused ;;
    esac
  fi
}

say paictl-facts 1
for part in time system cpu memory disks network dns cgroup runtimes gpus infiniband sudo; do
  # Standard input holds the rest of this script: no program may read it.
  "facts_$part" </dev/null 2>/dev/null || :
done
say end ok
