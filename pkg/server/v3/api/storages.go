package api

// Storage is a storage for jobs, as administrators see it. It contains no credentials.
type Storage struct {
	Name     string   `json:"name"`
	Kind     string   `json:"kind"` // nfs, samba, azureFile, azureBlob, dshuttle or other
	Volume   string   `json:"volume"`
	Capacity string   `json:"capacity,omitempty"`
	ReadOnly bool     `json:"readOnly"`
	PerUser  bool     `json:"perUser"` // a job sees only the folder of its user
	Groups   []string `json:"groups"`  // the groups whose members may use the storage
}

// Storages is the list of all storages, sorted by name.
type Storages struct {
	Items []Storage `json:"items"`
}
