package ssh

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The SSH client is the only component that limits concurrent transfers.
func TestEightHostsReceiveFilesAtATime(t *testing.T) {
	for given, want := range map[int]int{0: 8, 3: 3, 20: 20} {
		c := NewClient(Options{Uploads: given, ConfigFile: None, KnownHosts: t.TempDir() + "/known_hosts"})
		assert.Equal(t, want, cap(c.uploads))
		assert.NoError(t, c.Close())
	}
}
