package engine

import (
	"encoding/base64"
	"time"

	"github.com/openpai/paictl/pkg/cluster/answer"
)

// Facts holds the output of a node's detection script. Each phase has a section.
type Facts struct {
	Sections map[string]answer.Answer
	// QueriedAt and AnsweredAt are the times at which the script was started and its output arrived, according to the operator's clock.
	QueriedAt, AnsweredAt time.Time
}

// Decoded returns the content of a base64 field, or nil if the field isn't valid base64.
func Decoded(s string) []byte {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return nil
	}
	return b
}
