package v2

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/wire"
)

// removeTime limits how long a request waits until the job is deleted.
const removeTime = 10 * time.Second

type removeIn struct {
	History bool `query:"history"`
}

func remove(c *server.Call) error {
	in := removeIn{}
	if err := c.Decode(&in); err != nil {
		return err
	}
	if in.History {
		j, err := find(c, "job.forget")
		if err != nil {
			return err
		}
		n, err := j.Forget(c.Context())
		if err != nil {
			return err
		}
		return c.JSON(message{Status: http.StatusOK, Message: fmt.Sprintf("Delete %d jobs of the name %s~%s from the history successfully.", n, j.User(), j.Name())})
	}
	j, err := find(c, "job.delete")
	if err != nil {
		return err
	}
	if _, err := j.Remove(c.Context()); err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(c.Context(), removeTime)
	defer cancel()
	gone, err := j.WaitDeleted(wait)
	if err != nil {
		return err
	}
	if !gone {
		return c.Accepted(message{Status: http.StatusAccepted, Message: fmt.Sprintf("Job %s~%s is being deleted: its name is free when its tasks have finished.", j.User(), j.Name())})
	}
	return c.JSON(message{Status: http.StatusOK, Message: fmt.Sprintf("Delete job %s~%s successfully.", j.User(), j.Name())})
}

// submitOld responds with an error to very old clients, which send job files of version 1.
func submitOld(*server.Call) error {
	return &wire.Error{Status: http.StatusGone, Code: "GoneError", Message: "Job files of version 1 are no longer taken.", Remedy: "write one of version 2 (docs/job-protocol.md), and send it to " + prefix + "/jobs"}
}

type oneIn struct {
	Job string `path:"job"`
}

func (in *oneIn) find(ctx context.Context, d *app.Actions) (*app.Job, error) {
	user, name, _ := strings.Cut(in.Job, "~")
	return d.Job(ctx, "job.read", user, name)
}

// podList lists the existing pods of a job.
type podList struct {
	Items []job.TaskPod `json:"items"`
}

func pods(ctx context.Context, d *app.Actions, in *oneIn) (*podList, error) {
	j, err := in.find(ctx, d)
	if err != nil {
		return nil, err
	}
	items, err := j.Pods(ctx)
	return &podList{items}, err
}

func why(ctx context.Context, d *app.Actions, in *oneIn) (*job.Why, error) {
	j, err := in.find(ctx, d)
	if err != nil {
		return nil, err
	}
	return j.Why(ctx)
}

// sshInfo describes the addresses at which tasks accept SSH connections. KeyPair is always null, because the cluster creates no keys. People use
// their own keys, or the keys of the job file.
type sshInfo struct {
	Containers []sshContainer `json:"containers"`
	KeyPair    *struct{}      `json:"keyPair"`
}

type sshContainer struct {
	ID   string `json:"id"`
	IP   string `json:"sshIp"`
	Port string `json:"sshPort"`
	Role string `json:"taskRoleName"`
	Task int32  `json:"taskIndex"`
}

func ssh(c *server.Call) error {
	j, d, err := read(c)
	if err != nil {
		return err
	}
	out := sshInfo{Containers: []sshContainer{}}
	for i := range d.Tasks {
		t := &d.Tasks[i]
		ports := d.Ports(t)["ssh"]
		if t.Phase != job.Running || t.IP == "" || len(ports) == 0 || !d.AcceptsSSH(t.Role) {
			continue
		}
		out.Containers = append(out.Containers, sshContainer{t.PodUID, t.IP, strconv.Itoa(ports[0]), t.Role, t.Index})
	}
	if len(out.Containers) == 0 {
		return &wire.Error{Status: http.StatusNotFound, Code: "NoJobSshInfoError", Message: fmt.Sprintf("SSH info of job %s~%s is not found.", j.User(), j.Name()),
			Remedy: "the plugin ssh in extras of the job file lets people log in to tasks that run"}
	}
	return c.JSON(out)
}
