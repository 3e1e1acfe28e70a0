package engine

import (
	"encoding/base64"
	"time"

	"github.com/openpai/paictl/pkg/cluster/answer"
)

// Facts holds the answers of all phases to one detect script on a node.
type Facts struct {
	Sections map[string]answer.Answer
	// Asked and Answered are the times at which the round trip began and ended, by the operator's clock.
	Asked, Answered time.Time
}

// Decoded returns the content of a base64 field.
func Decoded(s string) []byte {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return nil
	}
	return b
}
