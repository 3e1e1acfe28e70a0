package clientaddr_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/httpserver/clientaddr"
)

func TestOneCustomerIsOneNetwork(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.7":                "192.0.2.7",
		"::ffff:192.0.2.7":         "192.0.2.7",
		"2001:db8:1:2::7":          "2001:db8:1:2::/64",
		"2001:db8:1:2:ffff::":      "2001:db8:1:2::/64",
		"2001:db8:1:3::7":          "2001:db8:1:3::/64",
		"fe80::1%eth0":             "fe80::/64",
		"no address":               "no address",
		"":                         "",
		"2001:db8:1:2::7%evil\x00": "2001:db8:1:2::/64",
	} {
		assert.Equal(t, want, clientaddr.NetworkOf(address), address)
	}
}

func TestACustomerIsOneSite(t *testing.T) {
	for address, want := range map[string]string{"10.0.0.1": "10.0.0.1", "::ffff:10.0.0.1": "10.0.0.1", "2001:db8:1:2::3": "2001:db8:1::/48", "2001:db8:1:ffff::": "2001:db8:1::/48", "2001:db8:2::": "2001:db8:2::/48", "fe80::1%eth0": "fe80::/48", "x": "x", "": ""} {
		assert.Equal(t, want, clientaddr.Site(address), address)
	}
}
