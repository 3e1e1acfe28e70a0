package target

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheDocumentsSayWhenAKilledUploadGoes(t *testing.T) {
	require.Equal(t, 3*time.Hour, abandoned)
	for _, file := range []string{"../../../../docs/backup.md", "../../../../docs/adr/0038-backups-leave-over-ssh-and-s3.md"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		said := strings.Join(strings.Fields(string(text)), " ")
		assert.Contains(t, said, "three hours", file)
		assert.Contains(t, said, fmt.Sprintf("%.0f hours", unfinished.Hours()), file)
	}
}
