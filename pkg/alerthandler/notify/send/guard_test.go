package send

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAddressesInsideAreRefused(t *testing.T) {
	g := &guard{inside: inside(), allowed: []netip.Prefix{netip.MustParsePrefix("10.20.0.0/16"), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16")},
		cluster: []netip.Prefix{netip.MustParsePrefix("10.20.128.0/17"), netip.MustParsePrefix("203.1.0.0/16"), netip.MustParsePrefix("2001:4860::/64")}}
	for address, ok := range map[string]bool{
		"8.8.8.8:443": true, "[2606:4700::1111]:443": true, "10.20.3.4:443": true, // the last is allowed
		"10.20.130.4:443": false, "203.1.2.3:443": false, "[2001:4860::1]:443": false, "[::ffff:203.1.2.3]:443": false, // of the cluster
		"127.0.0.1:443": false, "127.1.2.3:80": false, "[::1]:443": false, "0.0.0.0:80": false, "[::]:80": false,
		"169.254.169.254:80": false, "[fe80::1%eth0]:80": false, "10.0.0.1:443": false, "10.21.0.1:443": false, "172.31.255.255:443": false, "192.168.1.1:443": false, "100.64.0.1:443": false,
		"[fc00::1]:443": false, "[::ffff:127.0.0.1]:80": false, "[::ffff:10.0.0.1]:80": false, "[64:ff9b::7f00:1]:80": false, "[2002:7f00:1::]:80": false, "[::7f00:1]:80": false,
		"255.255.255.255:80": false, "224.0.0.1:80": false, "[ff02::1]:80": false, "198.18.0.1:80": false, "somewhere:80": false,
	} {
		err := g.control("tcp", address, nil)
		assert.Equal(t, ok, err == nil, "%s: %v", address, err)
	}
}
