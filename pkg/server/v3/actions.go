package v3

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	actionsv1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/server/wire"
)

func actionRoutes() []server.Route {
	const all, one = api.Prefix + "/actions", api.Prefix + "/actions/{action}"
	return []server.Route{
		server.JSON("GET", all, "action.read", "Lists the requests to stop or requeue jobs, or to change machines, and their results, latest first", listActions, server.Each(1), server.Errors("NoAlertHandlerError")),
		server.JSON("POST", all, "action.create", "Requests that a job is stopped or requeued, a machine is cordoned, uncordoned, drained or restarted, or a GPU is reset", requestAction, server.Status(201),
			server.Errors("NoAlertHandlerError", "NoJobError", "ConflictJobError", "NoMachineError")),
		server.JSON("GET", one, "action.read", "Returns a request and its result", getAction, server.Errors("NoAlertHandlerError", "NoActionError")),
		server.JSON("POST", one+"/cancel", "action.cancel", "Withdraws a request that hasn't begun, or stops a drain", cancelAction,
			server.Errors("NoAlertHandlerError", "NoActionError", "ConflictActionError", "ConflictError")),
	}
}

type listActionsIn struct {
	Phase   []string `query:"phase"`
	Machine string   `query:"machine"`
	Job     string   `query:"job"`
	Limit   int      `query:"limit"`
	Cursor  string   `query:"cursor"`
}

// defaultActions is the number of Actions on a page if the request sets no limit.
const defaultActions = 100

func listActions(ctx context.Context, d *app.Actions, in *listActionsIn) (*api.Actions, error) {
	f := app.ActionFilter{Machine: in.Machine, Job: in.Job, Limit: in.Limit, Cursor: in.Cursor}
	if f.Limit == 0 {
		f.Limit = defaultActions
	}
	if f.Limit < 1 || f.Limit > app.MaxActions {
		return nil, wire.Bad(fmt.Sprintf(`"limit" must be from 1 to %d`, app.MaxActions))
	}
	var err error
	if f.Phases, err = readPhases(in.Phase); err != nil {
		return nil, err
	}
	items, next, err := d.Actions(ctx, f)
	if err != nil {
		return nil, err
	}
	out := &api.Actions{Items: []api.Action{}, Next: next}
	for _, a := range items {
		out.Items = append(out.Items, *api.ActionOf(a))
	}
	return out, nil
}

// readPhases converts names to phases. It ignores case, and returns an error for an unknown name.
func readPhases(names []string) (out []actionsv1.Phase, err error) {
	all := actionsv1.Phases()
	for _, name := range names {
		i := slices.IndexFunc(all, func(p actionsv1.Phase) bool { return strings.EqualFold(p.String(), name) })
		if i < 0 {
			return nil, wire.Bad(`"phase" must be New, Pending, Noticed, Acting, Succeeded, Failed, Refused, Expired or Canceled`)
		}
		out = append(out, all[i])
	}
	return out, nil
}

type oneActionIn struct {
	Action string `path:"action"`
}

func getAction(ctx context.Context, d *app.Actions, in *oneActionIn) (*api.Action, error) {
	a, err := d.Action(ctx, in.Action)
	return shownAction(a, err)
}

// shownAction converts an Action to its form in responses.
func shownAction(a *actionsv1.Action, err error) (*api.Action, error) {
	if err != nil {
		return nil, err
	}
	return api.ActionOf(a), nil
}

type requestActionIn struct {
	Body api.NewAction `body:"json"`
}

func requestAction(ctx context.Context, d *app.Actions, in *requestActionIn) (*api.Action, error) {
	b := &in.Body
	n := app.NewAction{Operation: b.Operation, Job: b.Job, Machine: b.Machine, GPU: b.GPU, Reason: b.Reason, DryRun: b.DryRun, Grace: seconds(b.GraceSeconds)}
	if b.NotAfter != nil {
		n.NotAfter = *b.NotAfter
	}
	a, err := d.RequestAction(ctx, n)
	return shownAction(a, err)
}

// seconds returns the Duration of n seconds. If n is too large, it returns the longest Duration, which is rejected later.
func seconds(n int64) time.Duration {
	if n > math.MaxInt64/int64(time.Second) {
		return math.MaxInt64
	}
	return time.Duration(max(n, -1)) * time.Second
}

type cancelActionIn struct {
	Action string           `path:"action"`
	Body   api.Cancellation `body:"json"`
}

func cancelAction(ctx context.Context, d *app.Actions, in *cancelActionIn) (*api.Action, error) {
	a, err := d.CancelAction(ctx, in.Action, in.Body.Reason)
	return shownAction(a, err)
}
