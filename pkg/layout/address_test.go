package layout

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAddressesAreOrderedByTheirValue(t *testing.T) {
	have := []string{"10.0.0.10", "name", "10.0.0.9", "9.255.255.255", "a.name", "10.0.0.100"}
	slices.SortFunc(have, CompareAddresses)
	assert.Equal(t, []string{"9.255.255.255", "10.0.0.9", "10.0.0.10", "10.0.0.100", "a.name", "name"}, have)
}
