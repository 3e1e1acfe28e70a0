package facts

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/services/state"
)

// Checker checks the objects of many releases at once. *ready.Checker implements Checker.
type Checker interface {
	CheckAll(ctx context.Context, releases [][]ready.Target) ([]ready.State, error)
}

// States determines the states of services from the facts and the cluster's objects. The states are in the order of the facts. unowned holds the pods
// without an owner, by service.
func States(ctx context.Context, client kubernetes.Interface, c Checker, all []Service, unowned map[string][]corev1.Pod) ([]state.Status, error) {
	states, err := check(ctx, client, c, all)
	if err != nil {
		return nil, err
	}
	out := make([]state.Status, 0, len(all))
	for i := range all {
		st := all[i].status(states[all[i].Name])
		for k := range unowned[st.Name] {
			st.Problems = append(st.Problems, unownedProblem(st.Name, &unowned[st.Name][k]))
		}
		out = append(out, st)
	}
	return out, nil
}

// check checks the objects of all releases at once. check returns the states by service.
func check(ctx context.Context, client kubernetes.Interface, c Checker, all []Service) (map[string]ready.State, error) {
	var installed []*Service
	var targets [][]ready.Target
	for i := range all {
		if r := all[i].Release; r != nil {
			installed, targets = append(installed, &all[i]), append(targets, r.Targets)
		}
	}
	if len(installed) == 0 {
		return nil, nil
	}
	var states []ready.State
	var lost map[string][]string
	var group errgroup.Group
	group.Go(func() (err error) {
		if states, err = c.CheckAll(ctx, targets); err != nil {
			return fmt.Errorf("look at the services' pods: %w", err)
		}
		return nil
	})
	group.Go(func() (err error) { lost, err = lostConfigMaps(ctx, client, installed); return err })
	if err := group.Wait(); err != nil {
		return nil, err
	}
	out := map[string]ready.State{}
	for i, s := range installed {
		for _, cm := range lost[s.Name] {
			// Put the missing ConfigMap first. Pods may fail because they read the ConfigMap when they start.
			states[i].Problems = append([]ready.Problem{{Object: "configmap/" + cm, Reason: ready.ReasonMissing, Message: "something deleted it",
				Hint: "make it again: " + state.StartCommand(s.Name)}}, states[i].Problems...)
		}
		out[s.Name] = states[i]
	}
	return out, nil
}

func lostConfigMaps(ctx context.Context, client kubernetes.Interface, installed []*Service) (map[string][]string, error) {
	there := map[string]sets.Set[string]{} // by namespace
	out := map[string][]string{}
	for _, s := range installed {
		if len(s.Release.ConfigMaps) == 0 {
			continue
		}
		if there[s.Namespace] == nil {
			list, err := client.CoreV1().ConfigMaps(s.Namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("list the ConfigMaps of %s: %w", s.Namespace, err)
			}
			there[s.Namespace] = sets.New[string]()
			for i := range list.Items {
				there[s.Namespace].Insert(list.Items[i].Name)
			}
		}
		for _, name := range s.Release.ConfigMaps {
			if !there[s.Namespace].Has(name) {
				out[s.Name] = append(out[s.Name], name)
			}
		}
	}
	return out, nil
}

// status combines the facts about the service with the state of its objects.
func (s *Service) status(have ready.State) state.Status {
	st := state.Status{Name: s.Name, Namespace: s.Namespace}
	r := s.Release
	if r == nil {
		st.State = s.Absent
		if s.Wanted {
			st.Hint = state.StartCommand(s.Name)
		}
		return st
	}
	st.Revision, st.Chart, st.Updated, st.Paictl, st.Configuration = r.Revision, r.Chart, r.Updated, r.Paictl, r.Configuration
	st.Pods, st.ReadyPods, st.Problems, st.State = have.Pods, have.ReadyPods, have.Problems, stateOf(have)
	switch {
	case r.Status != StatusDeployed:
		st.State = state.StateFailed
		incomplete(&st, r.Status)
	case !s.Wanted:
		st.State = state.StateOrphan
		tell(&st, "Orphan", "it runs, but the configuration disables it or no longer has it", "run: paictl service stop -n "+s.Name)
	}
	return st
}

// incomplete adds a problem for a release that isn't in the state deployed. For an uninstalling release, incomplete removes the problems of missing
// objects.
func incomplete(st *state.Status, status string) {
	if status == StatusUninstalling {
		st.Problems = nil
		tell(st, "Incomplete", "its stop was interrupted ("+status+")", "finish it with: paictl service stop -n "+st.Name+"; or start it again with: "+state.StartCommand(st.Name))
		return
	}
	tell(st, "Incomplete", "its last start failed or was interrupted ("+status+")", "run: "+state.StartCommand(st.Name))
}

// tell adds a problem of the release before the problems of the pods.
func tell(st *state.Status, reason, message, remedy string) {
	p := ready.Problem{Object: "release/" + st.Name, Reason: reason, Message: message, Hint: remedy}
	st.Problems = append([]ready.Problem{p}, st.Problems...)
}

func stateOf(have ready.State) string {
	if have.Ready {
		return state.StateReady
	}
	if slices.ContainsFunc(have.Problems, func(p ready.Problem) bool { return p.Final }) {
		return state.StateFailed
	}
	return state.StateStarting
}
