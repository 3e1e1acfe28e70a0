package plural

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNumbersAndNounsAgree(t *testing.T) {
	for want, got := range map[string]string{
		"0 jobs": Of(0, "job"), "1 job": Of(1, "job"), "2 jobs": Of(int32(2), "job"), "1 process": Of(1, "process"), "3 processes": Of(3, "process"),
		"2 retries": Of(2, "retry"), "2 days": Of(2, "day"), "2 patches": Of(2, "patch"), "5 more tasks": Of(5, "more task"), "1 more task": Of(1, "more task"),
		"once": Times(1), "twice": Times(2), "3 times": Times(3), "0 times": Times(0),
	} {
		assert.Equal(t, want, got)
	}
}
