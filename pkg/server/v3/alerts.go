package v3

import (
	"context"

	"github.com/openpai/paictl/pkg/diagnose/alerts"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

func alertRoutes() []server.Route {
	const all, one = api.Prefix + "/silences", api.Prefix + "/silences/{silence}"
	return []server.Route{
		server.JSON("GET", api.Prefix+"/alerts", "alert.read", "Lists the firing alerts about your jobs, silenced ones as well, latest first; all alerts for administrators and for people with a grant for the page alerts", listAlerts,
			server.Errors("NotImplementedError")),
		server.JSON("GET", all, "silence.read", "Lists the silences of alerts that haven't ended", listSilences, server.Errors("NotImplementedError")),
		server.JSON("POST", all, "silence.create", "Silences alerts for a time", silence, server.Status(201), server.Errors("NotImplementedError")),
		server.JSON("DELETE", one, "silence.end", "Ends a silence", endSilence, server.Errors("NotImplementedError", "NoSilenceError")),
	}
}

func listAlerts(ctx context.Context, d *app.Actions, _ *struct{}) (*api.Alerts, error) {
	all, err := d.Alerts(ctx)
	if err != nil {
		return nil, err
	}
	out := &api.Alerts{Items: []api.Alert{}}
	for i := range all {
		out.Items = append(out.Items, *api.AlertOf(&all[i]))
	}
	return out, nil
}

func listSilences(ctx context.Context, d *app.Actions, _ *struct{}) (*api.Silences, error) {
	all, err := d.Silences(ctx)
	if err != nil {
		return nil, err
	}
	out := &api.Silences{Items: []api.Silence{}}
	for i := range all {
		out.Items = append(out.Items, *api.SilenceOf(&all[i].Silence, all[i].Alerts))
	}
	return out, nil
}

type silenceIn struct {
	Body api.NewSilence `body:"json"`
}

func silence(ctx context.Context, d *app.Actions, in *silenceIn) (*api.Silence, error) {
	n := app.NewSilence{For: seconds(in.Body.Seconds), Reason: in.Body.Reason}
	for _, m := range in.Body.Matchers {
		made := alerts.Matcher{Name: m.Label, Value: m.Value, Regex: m.Regex}
		if m.Not {
			made.Equal = new(bool)
		}
		n.Matchers = append(n.Matchers, made)
	}
	s, err := d.Silence(ctx, n)
	return shownSilence(s, err)
}

// shownSilence converts a silence to its form in responses.
func shownSilence(s *app.Silence, err error) (*api.Silence, error) {
	if err != nil {
		return nil, err
	}
	return api.SilenceOf(&s.Silence, s.Alerts), nil
}

type endSilenceIn struct {
	Silence string `path:"silence"`
}

func endSilence(ctx context.Context, d *app.Actions, in *endSilenceIn) (*api.Silence, error) {
	s, err := d.EndSilence(ctx, in.Silence)
	return shownSilence(s, err)
}
