package v2

import (
	"fmt"
	"net/http"
	"reflect"

	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/wire"
)

func tagRoutes() []server.Route {
	out := []server.Route{}
	for method, serve := range map[string]func(*server.Call) error{http.MethodPut: tag, http.MethodDelete: untag} {
		out = append(out, server.Route{Method: method, Path: one + "/tag", Rule: "job.tag", Serve: serve, In: reflect.TypeFor[tagIn](), Out: reflect.TypeFor[message](), Summary: "Changes the tags of a job; the body names them, also for DELETE", Errors: []string{"NoJobError", "NoTagError"}})
	}
	return out
}

type tagIn struct {
	Body struct {
		Value string `json:"value"`
	} `body:"json"`
}

func tag(c *server.Call) error {
	return changeTag(c, "Add tag for", func(j *app.Job, tags []string) error {
		_, err := j.Tag(c.Context(), tags)
		return err
	})
}

func untag(c *server.Call) error {
	return changeTag(c, "Delete tag from", func(j *app.Job, tags []string) error {
		_, err := j.Untag(c.Context(), tags)
		return err
	})
}

func changeTag(c *server.Call, done string, change func(*app.Job, []string) error) error {
	in := tagIn{}
	if err := c.Decode(&in); err != nil {
		return err
	}
	if in.Body.Value == "" {
		return wire.Bad(`"value" is required`)
	}
	j, err := find(c, "job.tag")
	if err != nil {
		return err
	}
	if err := change(j, []string{in.Body.Value}); err != nil {
		return err
	}
	return c.JSON(message{Status: http.StatusOK, Message: fmt.Sprintf("%s job %s~%s successfully.", done, j.User(), j.Name())})
}
