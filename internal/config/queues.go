package config

import "slices"

// SyncQueues are the URLs of all sync queues in use, each once: the shared one
// and those that sources have of their own.
func (c *Config) SyncQueues() []string {
	urls := []string{c.Queues.Sync}
	for _, r := range c.Routes {
		if r.Source.Queue != "" && !slices.Contains(urls, r.Source.Queue) {
			urls = append(urls, r.Source.Queue)
		}
	}
	return urls
}
