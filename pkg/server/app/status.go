package app

import (
	"context"
	"net/http"

	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/server/wire"
	"github.com/openpai/paictl/pkg/status"
)

// Status returns the state of the whole cluster, for administrators.
func (d *Actions) Status(ctx context.Context) (*status.Cluster, error) {
	if err := rules.Class("kube.read", &d.caller.Subject); err != nil {
		return nil, err
	}
	if d.app.Status == nil {
		return nil, &wire.Error{Status: http.StatusNotImplemented, Code: codeNotImplemented, Message: "this server doesn't read the state of the cluster", Remedy: "use a kubeconfig: paictl status --kubeconfig FILE"}
	}
	return d.app.Status(ctx)
}
