package job

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMemoryHasAUnitOrIsInMB(t *testing.T) {
	for text, want := range map[string]int{"512": 512, "1Gi": 1024, "16GiB": 16384, "1.5Gi": 1536, "512M": 489, "1MB": 1, "1G": 954, "0": 0, "100Ki": 1} {
		var m megabytes
		require.NoError(t, m.Set(text), text)
		assert.Equal(t, want, int(m), text)
	}
	for _, text := range []string{"", "much", "Gi", "-1", "-1Gi", "1e99", "1 Gi", "99999999999999999999", "5Ei", "500m"} {
		m := megabytes(7)
		require.Error(t, m.Set(text), text)
		assert.Equal(t, 7, int(m), text)
	}
}
