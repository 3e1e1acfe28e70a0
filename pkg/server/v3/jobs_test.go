package v3

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A script that deletes or retries many jobs at once waits for all of these jobs at the same time.
func TestAPersonWaitsForTheEndsOfSixteenJobsAtATime(t *testing.T) {
	for _, r := range jobRoutes() {
		if r.Method == http.MethodPost && r.Path == one+"/retry" {
			assert.Equal(t, 16, r.Limit.Each)
		}
	}
	assert.Equal(t, 16, waits, "of deletions, too")
}
