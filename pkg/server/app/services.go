package app

import (
	"context"
	"net/http"

	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/server/wire"
	"github.com/openpai/paictl/pkg/services/state"
)

// Services returns the state of the platform's services. Only administrators may call it.
func (d *Actions) Services(ctx context.Context) (*state.Report, error) {
	if err := rules.Class("kube.read", &d.caller.Subject); err != nil {
		return nil, err
	}
	if d.app.Services == nil {
		return nil, &wire.Error{Status: http.StatusNotImplemented, Code: codeNotImplemented, Message: "this server doesn't read the state of services", Remedy: "use a kubeconfig: paictl service status --kubeconfig FILE"}
	}
	return d.app.Services(ctx)
}
