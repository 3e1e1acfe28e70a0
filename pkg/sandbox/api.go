package sandbox

import (
	"context"

	"github.com/openpai/paictl/pkg/hint"
)

// apiState is what an API-only sandbox remembers.
type apiState struct {
	Nodes int `json:"nodes"`
}

func (s *Sandbox) apiDown(context.Context) error { return nil }

// UpAPI starts a control plane on loopback.
func UpAPI(context.Context, Options, string) (*Sandbox, error) {
	return nil, hint.Errorf("use hosts: paictl sandbox up --hosts 3", "this build has no API-only sandbox yet")
}
