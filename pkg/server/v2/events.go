package v2

import (
	"slices"
	"strconv"
	"strings"
	"time"

	fapi "github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/wire"
)

// event is a Kubernetes event. Its times are strings, unlike the other times of this API.
type event struct {
	UID       string    `json:"uid"`
	Framework string    `json:"frameworkName"`
	Role      string    `json:"taskroleName,omitempty"`
	Task      string    `json:"taskName,omitempty"`
	Index     *int32    `json:"taskIndex,omitempty"`
	Type      string    `json:"type"`
	Reason    string    `json:"reason"`
	Message   string    `json:"message"`
	First     time.Time `json:"firstTimestamp"`
	Last      time.Time `json:"lastTimestamp"`
	Count     int32     `json:"count"`
	Component string    `json:"sourceComponent"`
	Host      string    `json:"sourceHost"` // it isn't stored
	Object    string    `json:"object"`
}

type eventsIn struct {
	Type   string `query:"type"`
	Offset int    `query:"offset"`
	Limit  *int   `query:"limit"`
}

func events(c *server.Call) error {
	in := eventsIn{}
	if err := c.Decode(&in); err != nil {
		return err
	}
	if in.Offset < 0 || in.Limit != nil && *in.Limit < 0 {
		return wire.Bad(`"offset" and "limit" must not be negative`)
	}
	j, err := find(c, "job.read")
	if err != nil {
		return err
	}
	all, note, err := j.Events(c.Context())
	if err != nil {
		return err
	}
	if note != nil {
		c.Warn(note.Error())
	}
	out := []event{}
	for _, e := range slices.Backward(all) {
		if in.Type == "" || e.Type == in.Type {
			out = append(out, newEvent(j, e))
		}
	}
	n := len(out)
	out = out[min(in.Offset, n):]
	if in.Limit != nil {
		out = out[:min(*in.Limit, len(out))]
	}
	return c.JSON(eventList{n, out})
}

// eventList holds a page of a job's events, and the total number of events.
type eventList struct {
	Total int     `json:"totalCount"`
	Data  []event `json:"data"`
}

func newEvent(j *app.Job, e fapi.Event) event {
	out := event{UID: e.UID, Framework: j.Object(), Type: e.Type, Reason: e.Reason, Message: e.Message, First: e.Time, Last: e.Time, Count: e.Count, Component: e.Source, Object: e.Object}
	pod, ok := strings.CutPrefix(e.Object, "Pod/"+j.Object()+"-")
	at := strings.LastIndex(pod, "-")
	if !ok || at < 0 {
		return out
	}
	if n, err := strconv.ParseInt(pod[at+1:], 10, 32); err == nil {
		index := int32(n)
		out.Role, out.Index, out.Task = j.RoleName(pod[:at]), &index, strings.TrimPrefix(e.Object, "Pod/")
	}
	return out
}
