package v3

import (
	"net/http"
	"reflect"
	"time"

	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

const (
	// codeBytes limits the size of code, which is a compressed folder.
	codeBytes = 256 << 20
	// codeTime limits the time to upload code. It is enough for 256 MiB at 150 KiB/s.
	codeTime = 30 * time.Minute
)

func codeRoutes() []server.Route {
	const path = api.Prefix + "/code/{sha256}"
	return []server.Route{
		{Method: http.MethodHead, Path: path, Rule: "code.head", Summary: "Reports whether you have sent a folder of code", Serve: headCode, Out: reflect.TypeFor[struct{}](), Errors: []string{"NoCodeError"}},
		{Method: http.MethodPut, Path: path, Rule: "code.put", Summary: "Stores a packed folder of code", Serve: putCode, Out: reflect.TypeFor[struct{}](), Status: http.StatusCreated, Limit: server.Limit{Body: codeBytes, Time: codeTime, Each: 1}},
	}
}

func headCode(c *server.Call) error {
	if err := c.Actions.HasCode(c.Context(), c.Request.PathValue("sha256")); err != nil {
		return err
	}
	return c.JSON(struct{}{})
}

func putCode(c *server.Call) error {
	if err := c.Actions.PutCode(c.Context(), c.Request.PathValue("sha256"), c.Request.ContentLength, c.Request.Body); err != nil {
		return err
	}
	return c.JSON(struct{}{})
}
