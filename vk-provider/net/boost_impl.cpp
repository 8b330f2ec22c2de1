// The one translation unit that holds the separately compiled parts of Asio, Asio's TLS and Beast.
#include <boost/asio/impl/src.hpp>
#include <boost/asio/ssl/impl/src.hpp>
#include <boost/beast/src.hpp>
