package origin_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/origin"
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
		assert.Equal(t, want, origin.NetworkOf(address), address)
	}
}
