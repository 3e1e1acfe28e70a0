package support

import (
	"context"
	"fmt"
	"io"
	"path"

	"github.com/openpai/paictl/pkg/diagnose/web"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/vc"
)

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

const alertManager = "alert-manager"

func (b *bundle) alerts(ctx context.Context, w io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, b.o.Limits.Log)
	defer cancel()
	client := web.New(b.o.Cluster)
	defer client.Close()
	body, err := client.Get(ctx, alertManager, "/api/v2/alerts", nil)
	if err != nil {
		return fmt.Errorf("ask Alertmanager: %w", b.o.Cluster.Explain(err))
	}
	defer func() { _ = body.Close() }()
	_, err = io.Copy(w, body)
	return err
}
