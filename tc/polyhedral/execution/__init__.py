"""When and where trees and loops run every instance."""
