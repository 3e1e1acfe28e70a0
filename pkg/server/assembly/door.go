package assembly

import (
	"github.com/openpai/paictl/pkg/access"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server/door"
)

// openDoor is the way to other services' pages. Their password is read each time: a Secret that is renewed reaches it while the program runs.
func openDoor(o Options) (*door.Door, error) {
	behind := door.Options{Services: o.Settings.Door, Failed: func(service string, err error) {
		o.Log.Warn("a service behind the door can't be asked", "service", service, "error", err.Error())
	}}
	if o.AccessFile != "" {
		behind.Password = func() (secret.String, error) {
			text, err := access.Read(o.AccessFile)
			return secret.String(text), err
		}
	}
	return door.New(behind)
}
