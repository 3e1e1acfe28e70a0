package cluster

import (
	"encoding/base64"
	"time"

	"github.com/openpai/paictl/pkg/cluster/answer"
)

// facts are what one detect script found on a node: the answers of each phase.
type facts struct {
	sections map[string]answer.Answer
	// asked and answered frame the round trip by the operator's clock.
	asked, answered time.Time
}

func encoded(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// decoded returns a field that travelled as base64.
func decoded(s string) []byte {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return nil
	}
	return b
}
