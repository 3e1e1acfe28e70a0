package client

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestANoteOfARetryIsOneSentence(t *testing.T) {
	for text, want := range map[string]string{
		"The server is being renewed.": "The server is being renewed; retrying for 1m",
		"connection refused":           "connection refused; retrying for 1m",
	} {
		assert.Equal(t, want, retryNote(errors.New(text), time.Minute))
	}
}
