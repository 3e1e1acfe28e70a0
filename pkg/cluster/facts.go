package cluster

import (
	"encoding/base64"
	"time"

	"github.com/openpai/paictl/pkg/cluster/answer"
)

// facts holds the answers of each phase to one detect script on a node.
type facts struct {
	sections map[string]answer.Answer
	// asked and answered are when the round trip began and ended, by the operator's clock.
	asked, answered time.Time
}

func encoded(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// decoded returns the content of a base64 field.
func decoded(s string) []byte {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return nil
	}
	return b
}
