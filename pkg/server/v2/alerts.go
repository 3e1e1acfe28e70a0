package v2

import (
	"context"
	"maps"
	"net/http"
	"time"

	"github.com/openpai/paictl/pkg/diagnose/alerts"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
)

func alertRoutes() []server.Route {
	return []server.Route{
		server.JSON(http.MethodGet, prefix+"/alerts", "alert.read", "Lists the firing alerts about your jobs, latest first; all alerts for administrators and for people with a grant for the page alerts", firing, server.Also(old+"/alerts"), server.Errors("NotImplementedError")),
	}
}

// alert is an alert in the format of Alertmanager's earlier API.
type alert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	Starts      time.Time         `json:"startsAt"`
	Ends        time.Time         `json:"endsAt"`
	Generator   string            `json:"generatorURL"`
	Status      alertStatus       `json:"status"`
	Receivers   []string          `json:"receivers"`
	Fingerprint string            `json:"fingerprint"`
}

type alertStatus struct {
	State       string   `json:"state"`
	SilencedBy  []string `json:"silencedBy"`
	InhibitedBy []string `json:"inhibitedBy"`
}

// labelUsername is the label with the name of the job's owner, for OpenPAI's clients.
const labelUsername = "username"

// newAlert converts an alert. It always sets the label and the annotation that the portal reads without a check. If the alert is about a job, the
// label job_name is USER~NAME, because OpenPAI's clients identify jobs in this form.
func newAlert(a *app.Alert) alert {
	out := alert{Labels: map[string]string{"severity": ""}, Annotations: map[string]string{"summary": ""}, Starts: a.StartsAt, Ends: a.EndsAt, Generator: a.Generator,
		Status: alertStatus{a.Status.State, append([]string{}, a.Status.SilencedBy...), append([]string{}, a.Status.InhibitedBy...)}, Receivers: []string{}, Fingerprint: a.Fingerprint}
	maps.Copy(out.Labels, a.Labels)
	maps.Copy(out.Annotations, a.Annotations)
	if owner, name := a.Labels[alerts.LabelUser], a.Labels[alerts.LabelJob]; owner != "" && name != "" {
		out.Labels[labelUsername], out.Labels[alerts.LabelJob] = owner, owner+"~"+name
	}
	for _, r := range a.Receivers {
		out.Receivers = append(out.Receivers, r.Name)
	}
	return out
}

func firing(ctx context.Context, d *app.Actions, _ *struct{}) (*[]alert, error) {
	all, err := d.Alerts(ctx)
	if err != nil {
		return nil, err
	}
	out := []alert{}
	for i := range all {
		if len(all[i].Status.SilencedBy) == 0 {
			out = append(out, newAlert(&all[i]))
		}
	}
	return &out, nil
}
