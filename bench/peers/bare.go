// Go's net/http, which sends the bytes of the first captured reply, whatever the path: `bare REPLIES.json`.
// Left out: everything, as in bare.mjs. It is given no requests with bodies.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
)

func main() {
	var replies []struct {
		Status     int
		RawHeaders []string
		Body       string
	}
	text, err := os.ReadFile(os.Args[1])
	if err == nil {
		err = json.Unmarshal(text, &replies)
	}
	if err != nil {
		log.Fatal(err)
	}
	reply := replies[0]
	headers := http.Header{}
	for i := 0; i < len(reply.RawHeaders); i += 2 {
		headers.Add(reply.RawHeaders[i], reply.RawHeaders[i+1])
	}
	for _, name := range []string{"Date", "Connection", "Keep-Alive"} {
		headers.Del(name) // net/http writes these itself
	}
	answer := func(writer http.ResponseWriter, request *http.Request) {
		header := writer.Header()
		for name, values := range headers {
			header[name] = values
		}
		writer.WriteHeader(reply.Status)
		io.WriteString(writer, reply.Body)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on http://%s/v1\n", listener.Addr())
	log.Fatal(http.Serve(listener, http.HandlerFunc(answer)))
}
