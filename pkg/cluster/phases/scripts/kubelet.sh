# v_kubelet WAIT: checks that the kubelet, which has just started, stays up: a bad setting ends it
# within a second, and systemd starts it again forever. It counts as up once it has been the same
# process for five seconds. With WAIT 1, its node must also be Ready.
v_kubelet() {
	i=0 same=0 last='' s='' before=''
	while :; do
		state_='' pid_='' restarts=''
		while IFS== read -r key_ value_; do
			case $key_ in
			ActiveState) state_=$value_ ;;
			MainPID) pid_=$value_ ;;
			NRestarts) restarts=$value_ ;;
			esac
		done <<EOF
$(systemctl show -p ActiveState -p MainPID -p NRestarts kubelet.service)
EOF
		now="$state_ $pid_ $restarts"
		if [ "$state_" = active ] && [ "$now" = "$last" ]; then same=$((same + 1)); else same=0; fi
		last=$now
		before=${before:-$restarts}
		if [ "$same" -ge 10 ]; then
			[ "$1" = 1 ] || return 0
			s=$(ready)
			case $s in True*) return 0 ;; esac
		elif [ $((${restarts:-0} - ${before:-0})) -ge 4 ] || [ "$i" -ge 60 ]; then
			echo "the kubelet does not stay up: $(unit_cause kubelet.service) -> see journalctl -u kubelet on the host" >&2
			exit 1
		fi
		i=$((i + 1))
		[ "$i" -lt 360 ] || never_ready "$s"
		sleep 0.5
	done
}
