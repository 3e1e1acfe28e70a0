package support

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/httpserver/access"
	"github.com/openpai/paictl/pkg/job/stream"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/vc"
)

// servicePart writes the services' states and Alertmanager's alerts.
func (b *bundle) servicePart(ctx context.Context) {
	name := path.Join(PartServices, "status.json")
	if b.serviceErr != nil {
		b.archive.missing(name, b.o.Cluster.Explain(b.serviceErr))
	}
	if len(b.services) > 0 {
		b.archive.add(name, "State and problems of each service (paictl service status)", func(w io.Writer) error { return writeJSON(w, b.services) })
	}
	b.archive.add(path.Join(PartServices, "alerts.json"), "Alerts that Alertmanager has", func(w io.Writer) error { return b.alerts(ctx, w) })
}

// scheduler writes the virtual clusters and the waiting jobs.
func (b *bundle) scheduler(ctx context.Context) {
	s := vc.NewScheduler(b.o.Cluster.Client)
	b.archive.add(path.Join(PartScheduler, "virtual-clusters.json"), "Virtual clusters: their resources and usage (paictl vc list)", func(w io.Writer) error {
		got, err := s.VirtualClusters(ctx)
		if err != nil {
			return err
		}
		return writeJSON(w, got)
	})
	b.archive.add(path.Join(PartScheduler, "queue.json"), "Gangs that wait for GPUs (paictl job queue)", func(w io.Writer) error {
		got, err := s.Queue(ctx, api.QueueQuery{})
		if err != nil {
			return err
		}
		return writeJSON(w, got)
	})
	b.archive.add(path.Join(PartScheduler, "nodes.json"), "Cells of each machine, and who has them", func(w io.Writer) error {
		got, err := s.Nodes(ctx)
		if err != nil {
			return err
		}
		return writeJSON(w, got)
	})
}

// alertManager is the service's name.
const alertManager = "alert-manager"

// portOf returns the port that a pod declares, or 0.
func portOf(pod *corev1.Pod) int {
	for i := range pod.Spec.Containers {
		for _, p := range pod.Spec.Containers[i].Ports {
			return int(p.ContainerPort)
		}
	}
	return 0
}

// alerts queries Alertmanager through a connection to its pod, because the API server's proxy would remove the password.
func (b *bundle) alerts(ctx context.Context, w io.Writer) error {
	client := b.o.Cluster.Client.CoreV1()
	pods, err := client.Pods(kube.SystemNamespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + alertManager, FieldSelector: "status.phase=Running"})
	if err != nil {
		return b.o.Cluster.Explain(err)
	}
	if len(pods.Items) == 0 {
		return errors.New("Alertmanager doesn't run") //nolint:staticcheck // a name
	}
	held, err := client.Secrets(kube.SystemNamespace).Get(ctx, access.Secret, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the password of metrics: %w", err)
	}
	var listener net.ListenConfig
	l, err := listener.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, b.o.Limits.Log)
	defer cancel()
	problem := make(chan error, 1)
	go func() {
		_ = stream.Serve(ctx, b.o.Cluster, l, stream.Port{Namespace: kube.SystemNamespace, Pod: pods.Items[0].Name, Number: portOf(&pods.Items[0])}, func(err error) {
			select {
			case problem <- err:
			default:
			}
		})
	}()
	return fetchAlerts(ctx, "http://"+l.Addr().String(), held, problem, w)
}

func fetchAlerts(ctx context.Context, url string, held *corev1.Secret, problem <-chan error, w io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/api/v2/alerts", http.NoBody)
	if err != nil {
		return err
	}
	req.SetBasicAuth(access.User, string(held.Data[access.KeyPassword]))
	own := &http.Client{Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true}}
	resp, err := own.Do(req)
	if err != nil {
		select {
		case why := <-problem:
			return why
		default:
			return fmt.Errorf("ask Alertmanager: %w", err)
		}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("ask Alertmanager: it answers %s", resp.Status)
	}
	_, err = io.Copy(w, resp.Body)
	return err
}
