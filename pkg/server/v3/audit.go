package v3

import (
	"context"
	"time"

	"github.com/openpai/paictl/pkg/audit"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/server/wire"
)

func auditRoutes() []server.Route {
	return []server.Route{server.JSON("GET", api.Prefix+"/audit", "audit.read", "Lists the records of the audit, latest first", audited)}
}

type auditIn struct {
	Actor   string `query:"actor"`
	Object  string `query:"object"`
	Owner   string `query:"owner"`
	Kind    string `query:"kind"`
	Verb    string `query:"verb"`
	Outcome string `query:"outcome"`
	Since   string `query:"since"`
	Until   string `query:"until"`
	Cursor  string `query:"cursor"`
	Limit   int    `query:"limit"`
}

func audited(ctx context.Context, d *app.Actions, in *auditIn) (*audit.Page, error) {
	q := audit.Query{Actor: in.Actor, Object: in.Object, Owner: in.Owner, Kind: in.Kind, Verb: in.Verb, Outcome: in.Outcome, Cursor: in.Cursor, Limit: in.Limit}
	var err error
	if q.Since, err = instant(in.Since); err != nil {
		return nil, err
	}
	if q.Until, err = instant(in.Until); err != nil {
		return nil, err
	}
	return d.Audited(ctx, q)
}

// instant parses a time. It returns the zero time if the text is empty.
func instant(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, ok := moment(text)
	if !ok {
		return t, wire.Bad(`"since" and "until" must be times such as 2026-01-31T12:00:00Z`)
	}
	return t, nil
}

// moment parses a time, and reports whether the text is a time. It rejects the year 9999, because a time near the end of that year can't be encoded
// as JSON after rounding up.
func moment(text string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339Nano, text)
	return t, err == nil && t.UTC().Year() < 9999
}
