#!/bin/sh
# Written by paictl. Closes a cloud's metadata service to pods, or opens it: it gives credentials of the
# machine to whoever asks. Port 80 only: some clouds have their DNS server at the same address.
#
#   pod-metadata close|open
#
# What the machine forwards is refused, wherever it comes from: a pod's question that goes by way of
# another machine has that one's address. What the machine asks itself goes on.
set -eu
itself=8109 refused=8110 end=8111
for preference in $itself $refused $end; do
	while ip -4 rule del preference "$preference" 2>/dev/null; do :; done
done
[ "$1" = close ] || exit 0
# systemd-networkd, when it starts, removes rules that it doesn't know, but none of the protocol "kernel".
ip -4 rule add preference $end protocol kernel nop
for address in 169.254.169.254 100.100.100.200; do
	ip -4 rule add preference $itself iif lo to $address ipproto tcp dport 80 protocol kernel goto $end
	ip -4 rule add preference $refused to $address ipproto tcp dport 80 protocol kernel prohibit
done
