#!/bin/sh
# Written by paictl. Closes a cloud's metadata service to pods, or opens it: it gives credentials of the
# machine to whoever asks. Port 80 only: some clouds have their DNS server at the same address.
#
#   pod-metadata close PODS    PODS: the addresses of pods, such as 10.244.0.0/16
#   pod-metadata open
set -eu
preference=8110
# Old rules go in any case: the addresses of pods may be others now.
while ip -4 rule del preference "$preference" 2>/dev/null; do :; done
[ "$1" = close ] || exit 0
for address in 169.254.169.254 100.100.100.200; do
	# systemd-networkd, when it starts, removes rules that it doesn't know, but none of the protocol "kernel".
	ip -4 rule add preference "$preference" from "$2" to "$address" ipproto tcp dport 80 protocol kernel prohibit
done
