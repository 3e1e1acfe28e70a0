package v2

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/wire"
)

type putUserIn struct {
	Body struct {
		Patch bool `json:"patch"`
		Data  struct {
			Username       string                     `json:"username"`
			Email          *string                    `json:"email"`
			VirtualCluster []string                   `json:"virtualCluster"`
			Admin          *bool                      `json:"admin"`
			Password       secret.String              `json:"password"`
			Extension      map[string]json.RawMessage `json:"extension"`
		} `json:"data"`
	} `body:"json"`
}

func putUser(ctx context.Context, d *app.Actions, in *putUserIn) (*message, error) {
	data := &in.Body.Data
	if err := required(in.Body.Patch, data.Username, map[string]bool{"email": data.Email != nil, "virtualCluster": data.VirtualCluster != nil,
		"admin": data.Admin != nil, "password": data.Password.IsSet(), "extension": data.Extension != nil}); err != nil {
		return nil, err
	}
	all, err := d.Groups()
	if err != nil {
		return nil, err
	}
	if err := checkVCs(all, data.VirtualCluster); err != nil {
		return nil, err
	}
	c := app.UserChange{Password: data.Password, Spec: func(s *v1.UserSpec) error {
		if data.Email != nil {
			s.Email = *data.Email
		}
		if data.VirtualCluster != nil {
			if err := setVCs(d, s, all, data.VirtualCluster); err != nil {
				return err
			}
		}
		if data.Admin != nil {
			return setAdmin(d, s, all, *data.Admin)
		}
		return nil
	}}
	if err := extend(&c, data.Extension); err != nil {
		return nil, err
	}
	return change(ctx, d, data.Username, c)
}

// required returns an error for a change without a user name. Unless patch is true, it also returns an error if a field is missing. there reports, by
// field, whether the change contains the field.
func required(patch bool, username string, there map[string]bool) error {
	if username == "" {
		return wire.Bad(`"data.username" is required`)
	}
	for key, yes := range there {
		if !yes && !patch {
			return wire.Bad(fmt.Sprintf(`"data.%s" is required; with "patch": true, missing fields stay as they are`, key))
		}
	}
	return nil
}

type putMeIn struct {
	Body struct {
		Patch bool `json:"patch"`
		Data  struct {
			Username  string                     `json:"username"`
			Email     *string                    `json:"email"`
			Old       secret.String              `json:"oldPassword"`
			New       secret.String              `json:"newPassword"`
			Extension map[string]json.RawMessage `json:"extension"`
		} `json:"data"`
	} `body:"json"`
}

func putMe(ctx context.Context, d *app.Actions, in *putMeIn) (*message, error) {
	data := &in.Body.Data
	if err := required(in.Body.Patch, data.Username, map[string]bool{"email": data.Email != nil, "newPassword": data.New.IsSet()}); err != nil {
		return nil, err
	}
	if data.Username != d.Name() {
		return nil, &wire.Error{Status: 403, Code: wire.CodeForbidden, Message: `"data.username" is another person's name`}
	}
	c := app.UserChange{Password: data.New, Old: data.Old, Spec: func(s *v1.UserSpec) error {
		if data.Email != nil {
			s.Email = *data.Email
		}
		return nil
	}}
	if err := extend(&c, data.Extension); err != nil {
		return nil, err
	}
	return change(ctx, d, data.Username, c)
}
