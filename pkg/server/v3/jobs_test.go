package v3

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A script that deletes or retries a sweep's jobs together waits for all of them at once.
func TestAPersonWaitsForTheEndsOfSixteenJobsAtATime(t *testing.T) {
	for _, r := range jobRoutes() {
		if r.Method == http.MethodPost && r.Path == one+"/retry" {
			assert.Equal(t, 16, r.Limit.Each)
		}
	}
	assert.Equal(t, 16, waits, "of deletions, too")
}
