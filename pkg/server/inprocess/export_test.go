package inprocess

import (
	"testing"
	"time"
)

// SetAuditTime shortens how long a change waits for its record.
func SetAuditTime(t *testing.T, d time.Duration) {
	was := auditTime
	auditTime = d
	t.Cleanup(func() { auditTime = was })
}
