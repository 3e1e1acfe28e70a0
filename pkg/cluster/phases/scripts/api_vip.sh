# The virtual address of the API, as this machine's own API server and the network see it. The caller defines self.

# d_vip ADDRESS PORT: prints "vip-answers" yes or no: whether the API answers at the address. For an address that the cluster doesn't have yet, it
# prints "here yes" if this machine has it by itself, and "claimed HARDWARE" if another machine answers at it. ADDRESS is "" if none is wanted.
d_vip() {
	[ -n "$1" ] || return 0
	if [ -f "$KUBECONFIG" ] && [ -f "$S/member" ]; then
		has=$(self get daemonset/pai-api-vip -n kube-system --ignore-not-found --request-timeout=10s \
			-o 'go-template={{with .metadata.annotations}}{{index . "paictl.openpai.org/address"}}{{end}}' 2>/dev/null) || return 0
		if [ "$has" = "$1" ]; then
			v_answers "$1" "$2"
			return 0
		fi
	fi
	# An address that pai-api-vip sets expires after seconds.
	case $(ip -4 -o addr show to "$1/32") in *"valid_lft forever"*) printf 'here\tyes\n' && return 0 ;; esac
	# The neighbour table may still name a machine that had the address before. The port may be closed: a machine that has the address answers to ARP.
	ip neigh flush to "$1/32" >/dev/null 2>&1 || true
	timeout 2 bash -c 'exec 3<>"/dev/tcp/$1/$2"' claimed "$1" "$2" >/dev/null 2>&1 </dev/null || true
	mac=$(ip neigh show to "$1/32" | sed -n 's/.* lladdr \([0-9a-f:]*\).*/\1/p' | head -n 1)
	[ -z "$mac" ] || printf 'claimed\t%s\n' "$mac"
}

# v_apply: applies the manifest on standard input (base64).
v_apply() {
	base64 -d | self apply -f - >&2
	note change "pai-api-vip"
}

# v_works ADDRESS PORT: waits until the API of this cluster answers at the address.
v_works() {
	i=0
	until why=$(kubectl --server="https://$1:$2" get --raw /readyz --request-timeout=5s 2>&1 >/dev/null); do
		i=$((i + 1))
		[ "$i" -lt 120 ] || v_silent "$1"
		sleep 0.5
	done
	v_holder
}

# v_reach ADDRESS PORT: prints "reach yes" if this machine, a member, reaches the API at the address, otherwise "reach no" and the reason.
v_reach() {
	conf=$R/etc/kubernetes/kubelet.conf i=0
	[ -f "$conf" ] || return 0
	until why=$(kubectl --kubeconfig="$conf" --server="https://$1:$2" get --raw /readyz --request-timeout=5s 2>&1 >/dev/null); do
		i=$((i + 1))
		[ "$i" -lt 10 ] || { printf 'reach\tno\t%s\n' "$(printf %s "$why" | tr '\t\n' '  ' | cut -c1-300)" && return 0; }
		sleep 1
	done
	printf 'reach\tyes\n'
}

# v_look ADDRESS PORT: prints the holder that this machine's own API server knows, and whether the API answers at the address.
v_look() {
	v_holder
	v_answers "$1" "$2"
}

v_holder() {
	self get lease pai-api-vip -n kube-system --ignore-not-found --request-timeout=10s \
		-o go-template='{{with .spec}}{{with .holderIdentity}}vip-holder{{"\t"}}{{printf "%q" .}}{{"\n"}}{{end}}{{end}}' 2>/dev/null || true
}

v_answers() {
	if kubectl --server="https://$1:$2" get --raw /readyz --request-timeout=5s >/dev/null 2>&1; then printf 'vip-answers\tyes\n'; else printf 'vip-answers\tno\n'; fi
}

v_silent() {
	pods=$(self logs -n kube-system -l app.kubernetes.io/name=pai-api-vip --tail=20 --request-timeout=10s 2>/dev/null | grep -e 'level=ERROR' -e 'is not ready' | tail -n 1) || pods=
	echo "the API does not answer at its virtual address $1: $(printf %s "${pods:-$why}" | tr '\t\n' '  ' | cut -c1-300) -> kubectl -n kube-system describe daemonset pai-api-vip, and its pods' logs; or remove api-vip from kubernetes-configuration.yaml" >&2
	exit 1
}

# v_gone: removes the address from the cluster. The pods drop it when they end; pods of a machine without power don't matter.
v_gone() {
	self delete daemonset/pai-api-vip rolebinding/pai-api-vip role/pai-api-vip serviceaccount/pai-api-vip lease/pai-api-vip -n kube-system --ignore-not-found >&2
	self wait --for=delete pods -n kube-system -l app.kubernetes.io/name=pai-api-vip --timeout=30s >&2 || true
	note change "pai-api-vip removed"
}
