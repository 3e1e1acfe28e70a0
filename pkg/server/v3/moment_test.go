package v3

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/server/wire"
)

// Reports and sums of GPU hours round times up to whole hours. At the end of the year 9999, the rounded time couldn't be encoded as JSON.
func TestTimesThatCantBeRoundedUpAreRefused(t *testing.T) {
	const last = "9999-12-31T23:59:59Z"
	refused := func(err error) {
		t.Helper()
		var bad *wire.Error
		require.ErrorAs(t, err, &bad)
		assert.Equal(t, http.StatusBadRequest, bad.Status)
		assert.Contains(t, bad.Message, "2026-01-31T12:00:00Z")
	}
	_, err := instant(last)
	refused(err)
	_, err = window("1h", last, 0)
	refused(err)
	_, err = window(last, "", 0)
	refused(err)
	_, err = (&listIn{Since: last}).filter()
	refused(err)
	_, err = window("2026-11-01T00:00:00Z", "9998-12-31T23:59:59Z", 0)
	require.NoError(t, err)
}
