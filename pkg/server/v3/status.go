package v3

import (
	"context"
	"errors"

	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/status"
)

func watchStatus(c *server.Call) error {
	in := statusIn{}
	if err := c.Decode(&in); err != nil {
		return err
	}
	s := &statusSink{call: c, Events: c.Events()}
	err := c.Actions.WatchStatus(c.Context(), in.Parts, s)
	if !s.Begun() {
		return err
	}
	if errors.Is(err, context.Canceled) {
		return nil // the reader is gone
	}
	if s.AddJSON(api.EventEnd, "", problem(c, err)) == nil {
		_ = s.Flush() // the client may still be connected
	}
	return nil
}

// statusSink sends the results of a watch of the cluster's state as server-sent events.
type statusSink struct {
	*server.Events
	call *server.Call
}

// Snapshot implements app.StatusWatcher.
func (s *statusSink) Snapshot(c *status.Cluster) error {
	send, err := s.read(c)
	if err != nil {
		return err
	}
	return send()
}

// read encodes the whole state, and returns a function that sends it. During the encoding, the state counts toward the memory for responses.
func (s *statusSink) read(c *status.Cluster) (send func() error, err error) {
	give, err := s.call.Weigh(len(c.Jobs) + len(c.Machines)*rowsOfMachine)
	if err != nil {
		return nil, err
	}
	defer give()
	return s.Together(func() error { return s.AddJSON(api.EventSnapshot, "", c) })
}

// rowsOfMachine is the size of a machine with its GPUs in memory, as a number of rows of jobs.
const rowsOfMachine = 4

// Changed implements app.StatusWatcher.
func (s *statusSink) Changed(d *status.Delta) error {
	if err := s.AddJSON(api.EventChange, "", d); err != nil {
		return err
	}
	return s.Flush()
}

// Heartbeat implements app.StatusWatcher.
func (s *statusSink) Heartbeat() error {
	if !s.Begun() || !s.Quiet() {
		return nil
	}
	return s.Place("")
}
