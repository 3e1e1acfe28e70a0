#!/bin/sh
# Gives the kubelet the machine's DNS settings within the limits of Kubernetes. Pods get at most 3 name servers, 32 search domains
# and 2048 characters of them. Three domains of each pod are the cluster's own.
# Usage: kubelet-resolv-conf CLUSTER-DOMAIN
set -eu
R=${PAICTL_ROOT:-}
to=$R/run/paictl-resolv.conf
# systemd-resolved's stub 127.0.0.53 does not answer pods, so its file with the real servers comes first.
from=$R/etc/resolv.conf
if grep -qs '^nameserver' "$R/run/systemd/resolve/resolv.conf"; then from=$R/run/systemd/resolve/resolv.conf; fi
rm -f "$to.new"
[ -r "$from" ] || from=/dev/null
awk -v own="$1" '
	$1 == "nameserver" {
		if (seen[$2]++) next
		if ($2 ~ /^127\./ || $2 == "::1") loop[++loops] = $2; else if (++n <= 3) server[n] = $2
		next
	}
	$1 == "search" || $1 == "domain" { $1 = ""; search = $0; next } # the last one counts
	{ print }
	END {
		if (n == 0) for (; n < loops && n < 3; ) { n++; server[n] = loop[n] }
		for (i = 1; i <= n && i <= 3; i++) print "nameserver " server[i]
		left = 2048 - 75 - 3 * length(own) # a namespace has up to 63 characters
		k = split(search, domain, " ")
		for (i = 1; i <= k && i <= 29 && (left -= length(domain[i]) + 1) >= 0; i++) kept = kept " " domain[i]
		if (kept != "") print "search" kept
	}' "$from" >"$to.new"
# Settings within the limits are the machine's own file, which changes with them.
words() { awk '$1 == "nameserver" || $1 == "search" { print NF, $0 }' "$1" | sort; }
if [ "$(words "$from")" = "$(words "$to.new")" ]; then ln -sf "$from" "$to.new"; fi
mv -f "$to.new" "$to"
