package job

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/api"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
)

// WaitingList holds the gangs that wait for GPUs, in the order of the queue.
type WaitingList struct {
	Items []WaitingGang `json:"items"`
	// Total is the number of waiting gangs, including gangs that the list leaves out.
	Total int `json:"total"`
}

// WaitingGang is a waiting gang with the name of its job.
type WaitingGang struct {
	Job string `json:"job"` // user/name
	schedulerapi.Queued
}

// Waiting asks the scheduler which gangs wait in a virtual cluster, or in all virtual clusters if vc is "". It returns the first limit gangs, or all
// gangs if limit is 0.
func (c *Client) Waiting(ctx context.Context, vc string, limit int, names NameOf) (*WaitingList, error) {
	q, err := c.Scheduler.Queue(ctx, schedulerapi.QueueQuery{VC: vc, Limit: limit})
	if err != nil {
		return nil, err
	}
	if vc != "" && len(q.Items) == 0 {
		if err := c.checkVC(ctx, vc); err != nil {
			return nil, err
		}
	}
	gangs := Gangs(q, func(object, other string) string { return c.titleOf(ctx, object, other) })
	return &WaitingList{Items: names.Waiting(gangs), Total: q.Total}, nil
}

// queue returns the gangs that wait for GPUs. It returns an empty Queue if the scheduler doesn't respond, because then jobs don't wait in a queue.
func (c *Client) queue(ctx context.Context, vc string) Queue {
	q, err := c.Scheduler.Queue(ctx, schedulerapi.QueueQuery{VC: vc})
	if err != nil {
		return nil
	}
	return NewQueue(q)
}

const (
	// placesAtOnce is the number of jobs whose positions one request asks for. It is limited because a URL may have only some KiB.
	placesAtOnce = 40
	// questionsAtOnce is the number of concurrent requests.
	questionsAtOnce = 5
	// manyPlaces is the number of jobs from which on one request reads the whole queue.
	manyPlaces = 200
)

// places requests the positions of jobs in the queue of a virtual cluster, or of all virtual clusters if vc is "".
func (c *Client) places(ctx context.Context, vc string, rows []*Row) (Queue, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	questions := []schedulerapi.QueueQuery{{VC: vc}}
	if len(rows) < manyPlaces {
		questions = nil
		for some := range slices.Chunk(rows, placesAtOnce) {
			q := schedulerapi.QueueQuery{VC: vc}
			for _, r := range some {
				q.Prefixes = append(q.Prefixes, c.groups(&r.Job)...)
			}
			questions = append(questions, q)
		}
	}
	answers := make([]*schedulerapi.Queue, len(questions))
	var g errgroup.Group // a failed request doesn't cancel the others
	g.SetLimit(questionsAtOnce)
	for i, q := range questions {
		g.Go(func() (err error) {
			answers[i], err = c.Scheduler.Queue(ctx, q)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	all := &schedulerapi.Queue{}
	for _, a := range answers {
		all.Items = append(all.Items, a.Items...)
	}
	return NewQueue(all), nil
}

// groups returns the prefixes that the names of a job's gangs may have; see ObjectOfGroup.
func (c *Client) groups(j *api.Job) []string {
	return []string{j.User + "~" + j.Name + "/", c.Namespace + "/" + j.Framework + "-"}
}

// checkVC returns an error if a virtual cluster doesn't exist. It returns nil for a virtual cluster without waiting jobs.
func (c *Client) checkVC(ctx context.Context, name string) error {
	all, err := c.Scheduler.VirtualClusters(ctx)
	if err != nil {
		return err
	}
	var names []string
	for i := range all.Items {
		if all.Items[i].Name == name {
			return nil
		}
		names = append(names, all.Items[i].Name)
	}
	return hint.Errorf("there are: "+strings.Join(names, ", "), "there is no virtual cluster %q", name)
}

// titleOf returns the title of the job with a Framework, or other if it doesn't find the job.
func (c *Client) titleOf(ctx context.Context, object, other string) string {
	if !objectName.MatchString(object) {
		return other
	}
	f, err := c.Frameworks.Get(ctx, object)
	if err != nil || f.Annotations[v1.AnnotationJobName] == "" {
		return other
	}
	row := api.Summary(f)
	return row.User + "/" + row.Name
}
