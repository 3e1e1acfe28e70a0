package act

import (
	"context"
	"io"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/status/view"
)

// SignedIn implements the actions of a user who is signed in without a kubeconfig. Only actions on jobs work, because
// services and machines need a kubeconfig.
type SignedIn struct{ Jobs }

var _ view.Actions = (*SignedIn)(nil)

func needsKubeconfig(what string) error {
	return hint.Errorf("use the cluster's kubeconfig: paictl status --kubeconfig FILE", "%s needs a kubeconfig", what)
}

// ServicePods implements view.Actions.
func (*SignedIn) ServicePods(context.Context, *status.Service) ([]view.Pod, error) {
	return nil, needsKubeconfig("the list of a service's pods")
}

// ServiceLogs implements view.Actions.
func (*SignedIn) ServiceLogs(context.Context, *status.Service, io.Writer) error {
	return needsKubeconfig("the log of a service")
}

// RestartService implements view.Actions.
func (*SignedIn) RestartService(context.Context, *status.Service, io.Writer) error {
	return needsKubeconfig("the restart of a service")
}

// Cordon implements view.Actions.
func (*SignedIn) Cordon(context.Context, string) error { return needsKubeconfig("a cordon") }

// Uncordon implements view.Actions.
func (*SignedIn) Uncordon(context.Context, string) error { return needsKubeconfig("an uncordon") }

// Drain implements view.Actions.
func (*SignedIn) Drain(context.Context, string, io.Writer) error { return needsKubeconfig("a drain") }

// MachineJournal implements view.Actions.
func (*SignedIn) MachineJournal(context.Context, *status.Machine, io.Writer) error {
	return needsKubeconfig("the journal of a machine")
}
