package machines

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAddressesAreReadAsTheyWereWritten(t *testing.T) {
	got, err := Addresses(Value("10.0.0.1", "fd00::1"))
	require.NoError(t, err)
	assert.Equal(t, []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")}, got)
	for _, text := range []string{"", "10.0.0.1,", "w1", "10.0.0.0/24"} {
		_, err := Addresses(text)
		assert.ErrorContains(t, err, "is not an address", "%q", text)
	}
}

func TestADifferenceNamesAFew(t *testing.T) {
	have := map[string]string{"a": "1", "b": "2", "c": "3"}
	assert.Empty(t, Difference(have, have))
	assert.Equal(t, "d added, b changed, c removed", Difference(map[string]string{"a": "1", "b": "5", "d": "4"}, have))
	assert.Equal(t, "a, b, c and 1 more added", Difference(map[string]string{"a": "", "b": "", "c": "", "d": ""}, nil))
}
