package sandbox

import "context"

// apiState is what an API-only sandbox remembers.
type apiState struct {
	Nodes int `json:"nodes"`
}

func (s *Sandbox) apiDown(context.Context) error { return nil }
