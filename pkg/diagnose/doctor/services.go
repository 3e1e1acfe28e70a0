package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/runtime/rules"
	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/ui/plural"
)

func serviceChecks() []*Check {
	return []*Check{
		{
			ID: "services-ready", Group: "services", Title: "Services are ready", Needs: API | Pushed,
			Examines: "each service that was started: its pods, and why they aren't ready",
			Run:      servicesReady,
		},
		{
			ID: "services-current", Group: "services", Title: "Services run with the cluster's configuration", Needs: API | Pushed,
			Examines: "whether each running service matches the cluster's copy of the configuration, and running services that are no longer in it",
			Run:      servicesCurrent,
		},
		{
			ID: "image-pulls", Group: "services", Title: "Images can be pulled", Needs: API,
			Examines: "pods of the platform and of Kubernetes that wait for their image",
			Run:      imagePulls,
		},
		{
			ID: "crash-loops", Group: "services", Title: "No pod of the platform crashes repeatedly", Needs: API,
			Examines: "containers in kube-system, kube-flannel and pai-system that wait for their next start after a crash, or that had three restarts and the last within ten minutes",
			Run:      crashLoops,
		},
		{
			ID: "monitoring-targets", Group: "services", Title: "Prometheus reaches all targets", Needs: API | Pushed,
			Examines: "targets of Prometheus that are down for more than five minutes",
			Run:      monitoringTargets,
		},
		{
			ID: "alerts-wired", Group: "services", Title: "Alerts reach someone", Needs: API | Pushed,
			Examines: "whether Prometheus knows an Alertmanager, whether that answers, and whether it has a receiver. A test cluster may not need one: this is only reported",
			Run:      alertsWired,
		},
		{
			ID: "alerts-firing", Group: "services", Title: "No alert fires", Needs: API | Pushed,
			Examines: "the alerts that fire in Prometheus, except the severity info and the heartbeat",
			Run:      alertsFiring,
		},
	}
}

func servicesReady(ctx context.Context, c *Cluster) (out []Finding, _ error) {
	all, err := c.Services(ctx)
	if err != nil {
		return nil, err
	}
	started, waiting := 0, []string{}
	for _, s := range all {
		switch s.State {
		case services.StateReady, services.StateStarting, services.StateFailed:
			started++
		case services.StateStopped, services.StateNotInstalled:
			waiting = append(waiting, s.Name)
		}
	}
	for _, s := range all {
		if s.State != services.StateStarting && s.State != services.StateFailed {
			continue
		}
		f := problem(s.Name, "paictl service status -n "+s.Name+" says more; paictl service logs -n "+s.Name, "the service isn't ready: %d of %s", s.ReadyPods, plural.Of(s.Pods, "pod"))
		if s.State == services.StateStarting && c.Now().Sub(s.Updated) < settles {
			f.Verdict = Warning
		}
		if len(s.Problems) > 0 {
			p := s.Problems[0]
			f = f.seen(p.TextWithTerm())
			if p.Hint != "" {
				f.Remedy = p.Hint
			}
		}
		out = append(out, f)
	}
	switch {
	case started == 0 && len(waiting) > 0:
		return append(out, skip("no service was started: paictl service start")...), nil
	case len(waiting) > 0:
		out = append(out, note("", "not started: %s", strings.Join(waiting, ", ")))
	}
	return out, nil
}

func servicesCurrent(ctx context.Context, c *Cluster) (out []Finding, _ error) {
	all, err := c.Services(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		switch {
		case s.State == services.StateOrphan:
			out = append(out, warning(s.Name, "paictl service stop -n "+s.Name, "the service runs, but the configuration no longer has it"))
		case s.Configuration == services.ConfigurationChanged:
			out = append(out, warning(s.Name, "paictl service start -n "+s.Name, "the service runs with an older configuration than the cluster's copy"))
		}
	}
	return out, nil
}

func platformNamespaces() []string {
	return []string{metav1.NamespaceSystem, "kube-flannel", kube.SystemNamespace}
}

func imagePulls(ctx context.Context, c *Cluster) (out []Finding, _ error) {
	pods, err := c.AllPods(ctx)
	if err != nil {
		return nil, err
	}
	by := map[string][]string{}
	said := map[string]string{}
	for i := range pods {
		p := &pods[i]
		if !slices.Contains(platformNamespaces(), p.Namespace) {
			continue
		}
		for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			if w := s.State.Waiting; w != nil && imageMissing(w.Reason) {
				by[s.Image] = append(by[s.Image], p.Namespace+"/"+p.Name)
				said[s.Image] = rules.WithTerm(w.Reason) + ": " + w.Message
			}
		}
	}
	for _, image := range sortedKeys(by) {
		out = append(out, problem(by[image][0], "see whether the name is right and the registry reachable; images of the bundle come with paictl cluster up, or to your registry with paictl image push --all -p DIR",
			"the image %s can't be pulled, and %s for it", image, map[bool]string{true: "a pod waits", false: fmt.Sprintf("%d pods wait", len(by[image]))}[len(by[image]) == 1]).seen(said[image]))
	}
	return out, nil
}

func crashLoops(ctx context.Context, c *Cluster) (out []Finding, _ error) {
	pods, err := c.AllPods(ctx)
	if err != nil {
		return nil, err
	}
	for i := range pods {
		p := &pods[i]
		if !slices.Contains(platformNamespaces(), p.Namespace) {
			continue
		}
		for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			last := s.LastTerminationState.Terminated
			looping := s.State.Waiting != nil && s.State.Waiting.Reason == "CrashLoopBackOff"
			// A container that stopped because its machine stopped has the reason "Unknown".
			recent := last != nil && last.ExitCode != 0 && last.Reason != "Unknown" && s.RestartCount >= 3 && c.Now().Sub(last.FinishedAt.Time) < 10*time.Minute
			if !looping && !recent {
				continue
			}
			f := problem(p.Namespace+"/"+p.Name, fmt.Sprintf("kubectl -n %s logs %s -c %s --previous", p.Namespace, p.Name, s.Name), "the container %s on %s crashes repeatedly: %s so far", s.Name, p.Spec.NodeName, plural.Of(s.RestartCount, "restart"))
			if !looping {
				f.Verdict = Warning
			}
			if last != nil {
				f = f.seen(fmt.Sprintf("%s, exit code %d, at %s", rules.WithTerm(last.Reason), last.ExitCode, last.FinishedAt.UTC().Format(time.RFC3339)))
			}
			out = append(out, f)
		}
	}
	return out, nil
}

// runs returns the service with a name if the service is ready, otherwise nil.
func (c *Cluster) runs(ctx context.Context, name string) (*services.Status, error) {
	all, err := c.Services(ctx)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Name == name && all[i].State == services.StateReady {
			return &all[i], nil
		}
	}
	return nil, nil
}

func (c *Cluster) settledFor(s *services.Status) time.Duration { return c.Now().Sub(s.Updated) }

func monitoringTargets(ctx context.Context, c *Cluster) (out []Finding, _ error) {
	s, err := c.runs(ctx, "prometheus")
	if err != nil || s == nil {
		return skip("Prometheus isn't ready: see services-ready"), err
	}
	// Ignore targets that were just discovered or whose machine was just restarted.
	down, err := c.query(ctx, `max_over_time(up[5m]) == 0 and count_over_time(up[5m]) >= 4`)
	if err != nil {
		return nil, err
	}
	for _, m := range down {
		where := m["node"]
		if where == "" {
			where = m["instance"]
		}
		out = append(out, warning(where, "see whether its pod runs and port is open from Prometheus: paictl service status, docs/monitoring.md", "Prometheus gets no metrics of %s from %s", m["job"], m["instance"]))
	}
	return out, nil
}

func alertsWired(ctx context.Context, c *Cluster) (out []Finding, _ error) {
	prometheus, err := c.runs(ctx, "prometheus")
	if err != nil {
		return nil, err
	}
	manager, err := c.runs(ctx, "alert-manager")
	if err != nil {
		return nil, err
	}
	if prometheus == nil || manager == nil {
		return skip("Prometheus or Alertmanager isn't ready: see services-ready"), nil
	}
	wired, err := c.query(ctx, "prometheus_notifications_alertmanagers_discovered")
	if err != nil {
		return nil, err
	}
	known := slices.ContainsFunc(wired, func(m map[string]string) bool { return m["value"] != "0" })
	if len(wired) > 0 && !known && c.settledFor(manager) > settles {
		out = append(out, problem("prometheus", "paictl service restart -n prometheus; its log says why: paictl service logs -n prometheus", "Prometheus has no Alertmanager: alerts aren't sent"))
	}
	failing, err := c.query(ctx, "increase(prometheus_notifications_errors_total[10m]) > 0")
	if err == nil && len(failing) > 0 && c.settledFor(manager) > 10*time.Minute {
		out = append(out, warning("prometheus", "paictl service logs -n prometheus", "Prometheus had errors when it sent alerts in the last ten minutes"))
	}
	lost, err := c.query(ctx, "increase(alertmanager_notifications_failed_total[1h]) > 0")
	if err == nil {
		for _, m := range lost {
			out = append(out, problem("alert-manager", "see its receivers in services-configuration.yaml, and paictl service logs -n alert-manager", "Alertmanager could not deliver messages by %s in the last hour", m["integration"]))
		}
	}
	has, err := c.hasReceiver(ctx)
	if err == nil && !has {
		out = append(out, note("alert-manager", "Alertmanager has no receiver: alerts are only shown there (receivers in its section of services-configuration.yaml)"))
	}
	return out, nil
}

// hasReceiver reports whether Alertmanager's configuration contains a receiver that sends notifications.
func (c *Cluster) hasReceiver(ctx context.Context) (bool, error) {
	maps, err := c.Kube.Client.CoreV1().ConfigMaps(kube.SystemNamespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=alert-manager"})
	if err != nil {
		return false, err
	}
	for i := range maps.Items {
		for _, text := range maps.Items[i].Data {
			var parsed struct {
				Receivers []map[string]any `json:"receivers"`
			}
			if yaml.Unmarshal([]byte(text), &parsed) != nil {
				continue
			}
			for _, r := range parsed.Receivers {
				if len(r) > 1 && r["name"] != "heartbeat" { // it has settings other than its name
					return true, nil
				}
			}
		}
	}
	return false, nil
}

func alertsFiring(ctx context.Context, c *Cluster) (out []Finding, _ error) {
	s, err := c.runs(ctx, "prometheus")
	if err != nil || s == nil {
		return skip("Prometheus isn't ready: see services-ready"), err
	}
	firing, err := c.query(ctx, `ALERTS{alertstate="firing",severity!="info",alertname!~"Heartbeat|Watchdog"}`)
	if err != nil {
		return nil, err
	}
	count := map[string]int{}
	first := map[string]map[string]string{}
	for _, m := range firing {
		count[m["alertname"]]++
		if first[m["alertname"]] == nil {
			first[m["alertname"]] = m
		}
	}
	for _, name := range sortedKeys(count) {
		m := first[name]
		where := m["node"]
		if where == "" {
			where = m["instance"]
		}
		f := warning(where, "docs/alerts.md#"+strings.ToLower(name)+" says what it means and what to do", "the alert %s fires", name)
		if count[name] > 1 {
			f.Message = fmt.Sprintf("the alert %s fires %d times, the first for this", name, count[name])
		}
		out = append(out, f)
	}
	return out, nil
}
